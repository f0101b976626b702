"""How people are attacked: whom, by which attackers, and what chance alone would show."""
