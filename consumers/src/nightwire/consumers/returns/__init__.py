"""Returns."""
