"""Design matrices of terms, categories and bins of variables, and the regressions on them."""
