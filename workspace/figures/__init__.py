"""What a run's figures are: described purely, drawn by whoever shows them."""
