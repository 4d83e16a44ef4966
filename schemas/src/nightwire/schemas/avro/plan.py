"""Layouts and plans of schemas: what the codec's engines execute, native or in Python."""

from nightwire.schemas.avro.plans.layout import layout
from nightwire.schemas.avro.plans.program import Program
from nightwire.schemas.avro.plans.project import select
from nightwire.schemas.avro.plans.resolve import Mismatch, Resolution, own_plan, readable, resolve

__all__ = ["Mismatch", "Program", "Resolution", "layout", "own_plan", "readable", "resolve", "select"]
