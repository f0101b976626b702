"""Posteriors and draws from them: modes, Laplace, importance resampling, diagnostics."""
