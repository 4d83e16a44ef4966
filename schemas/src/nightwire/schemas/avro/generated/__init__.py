"""The engine in Python: source code generated from layouts and plans."""
