"""Flows: what happens to events on their way, as graphs that change while they run."""
