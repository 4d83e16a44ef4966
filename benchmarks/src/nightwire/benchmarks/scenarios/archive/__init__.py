"""The scenario `archive`: questions to what passed, and what keeping it costs the live stream."""
