"""Layouts and plans of schemas: what the codec's engines execute, native or in Python."""

from nightwire.schemas._layout import layout
from nightwire.schemas._program import Program
from nightwire.schemas._prune import select
from nightwire.schemas._resolve import Fault, Resolution, own_plan, readable, resolve

__all__ = ["Fault", "Program", "Resolution", "layout", "own_plan", "readable", "resolve", "select"]
