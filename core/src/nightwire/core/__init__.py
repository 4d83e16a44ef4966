"""What every nightwire process needs."""

__version__ = "0.1.0.dev0"
