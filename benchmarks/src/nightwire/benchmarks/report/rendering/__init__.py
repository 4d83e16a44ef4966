"""Rendering."""
