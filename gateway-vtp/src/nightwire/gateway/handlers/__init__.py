"""Handlers: commands and plug-ins that act on each event."""
