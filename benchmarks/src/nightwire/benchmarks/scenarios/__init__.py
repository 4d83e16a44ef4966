"""The scenarios, a package each, and the registry that finds them by name."""
