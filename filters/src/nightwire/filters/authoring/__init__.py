"""Authoring."""
