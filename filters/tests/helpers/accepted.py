"""Filters as the engine accepts them, with the facts of their texts."""

from dataclasses import asdict, replace

from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.text_facts import text_facts


def accepted(live: LiveFilter) -> LiveFilter:
    """Return *live* with the facts of its text."""
    return replace(live, facts=text_facts(asdict(live), compiled=bool(live.program)).dumps())
