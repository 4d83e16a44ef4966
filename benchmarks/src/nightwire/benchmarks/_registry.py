"""The scenarios there are."""

from collections.abc import Mapping
from importlib import import_module

from nightwire.benchmarks._scenario import Scenario

HOMES: Mapping[str, str] = {
    "codec": "nightwire.benchmarks.codec._scenario:CodecScenario",
    "dmtn028": "nightwire.benchmarks.dmtn._scenario:Dmtn028Scenario",
    "faults": "nightwire.benchmarks.faults._scenario:FaultsScenario",
    "filters": "nightwire.benchmarks.filters._scenario:FiltersScenario",
    "gateway": "nightwire.benchmarks.gateway._scenario:GatewayScenario",
    "growth": "nightwire.benchmarks.growth._scenario:GrowthScenario",
    "messages": "nightwire.benchmarks.messages._scenario:MessagesScenario",
    "night": "nightwire.benchmarks.night._scenario:NightScenario",
    "stretch": "nightwire.benchmarks.stretch._scenario:StretchScenario",
    "typed": "nightwire.benchmarks.typed._scenario:TypedScenario",
    "visit": "nightwire.benchmarks.visit._scenario:VisitScenario",
}
"""Where each scenario's class is; it is imported when it is asked for."""


class UnknownScenarioError(Exception):
    """There is no such scenario; the message names those there are."""


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(HOMES)


def scenario(name: str) -> Scenario:
    """Return a new scenario *name*.

    Raises:
        UnknownScenarioError: There is none.
    """
    if name not in HOMES:
        raise UnknownScenarioError(f"no scenario {name!r}; there are: {', '.join(names())}")
    module, attribute = HOMES[name].split(":")
    made: Scenario = getattr(import_module(module), attribute)()
    return made
