"""What the office allows: its policy, and how much of each kind of output may be disclosed."""
