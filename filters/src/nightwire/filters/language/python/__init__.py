"""The compiler from Python source to programs of the closed language."""

from nightwire.filters.language.python.compile import compile_python

__all__ = ["compile_python"]
