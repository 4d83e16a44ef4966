"""The scenario `visit`: what one visit costs, from the pipeline's dictionary to a filter's owner."""

from nightwire.benchmarks.visit._scenario import VisitScenario

__all__ = ["VisitScenario"]
