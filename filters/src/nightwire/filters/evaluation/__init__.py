"""Filters judge alerts: compiled over columns, or as code alert by alert."""
