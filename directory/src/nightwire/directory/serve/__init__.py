"""The directory's process, and its HTTP."""
