"""The compiler from Python source to programs of the closed language."""
