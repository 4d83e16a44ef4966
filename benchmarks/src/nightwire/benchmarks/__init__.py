"""Benchmarks: scenarios beside their baselines, results as JSON, and the report made from them."""

from nightwire.benchmarks.model.sample import Figures, Kind, Sample
from nightwire.benchmarks.model.scenario import (
    Better,
    Closeable,
    Context,
    Experiment,
    Figure,
    Line,
    Needs,
    Outcome,
    Published,
    RunError,
    Scenario,
    Series,
    Size,
)

__all__ = [
    "Better",
    "Closeable",
    "Context",
    "Experiment",
    "Figure",
    "Figures",
    "Kind",
    "Line",
    "Needs",
    "Outcome",
    "Published",
    "RunError",
    "Sample",
    "Scenario",
    "Series",
    "Size",
]
