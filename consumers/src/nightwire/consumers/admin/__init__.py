"""Admin."""
