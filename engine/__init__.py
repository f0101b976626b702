"""The statistical engine: pure computation, values in and values out."""
