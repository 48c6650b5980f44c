"""The next experiments from a CSV or Excel file; ``python -m sklearn_asal next``."""
