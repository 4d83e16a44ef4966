"""Statistics of filters at work: collected batch by batch, as metrics, and in `seen.<owner>`."""

from nightwire.filters.stats.metrics import Metrics

__all__ = ["Metrics"]
