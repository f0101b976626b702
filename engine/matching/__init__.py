"""The intruder: radii, windows, range counting, knowledge and its noise. Arrays in, arrays out."""
