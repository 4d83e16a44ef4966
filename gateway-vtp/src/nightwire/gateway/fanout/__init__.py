"""Fanout."""
