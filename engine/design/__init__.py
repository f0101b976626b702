"""Design matrices of categories, bins and terms, and the regressions on them."""
