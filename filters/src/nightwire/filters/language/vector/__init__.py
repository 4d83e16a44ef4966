"""Evaluation of programs over the columns of a table, with NumPy."""

from nightwire.filters.language.vector.evaluate import Verdicts, evaluate, evaluate_all

__all__ = ["Verdicts", "evaluate", "evaluate_all"]
