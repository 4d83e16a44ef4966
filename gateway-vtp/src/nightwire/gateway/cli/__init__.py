"""The verbs ``nightwire gateway`` and ``nightwire send``."""
