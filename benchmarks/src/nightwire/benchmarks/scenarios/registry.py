"""The scenarios there are."""

from collections.abc import Mapping
from importlib import import_module

from nightwire.benchmarks.model.scenario import Scenario

HOMES: Mapping[str, str] = {
    "archive": "nightwire.benchmarks.scenarios.archive.scenario:ArchiveScenario",
    "codec": "nightwire.benchmarks.scenarios.codec.scenario:CodecScenario",
    "congestion": "nightwire.benchmarks.scenarios.congestion.scenario:CongestionScenario",
    "directory": "nightwire.benchmarks.scenarios.directory.scenario:DirectoryScenario",
    "dmtn028": "nightwire.benchmarks.scenarios.dmtn028.scenario:Dmtn028Scenario",
    "faults": "nightwire.benchmarks.scenarios.faults.scenario:FaultsScenario",
    "filters": "nightwire.benchmarks.scenarios.filters.scenario:FiltersScenario",
    "flows": "nightwire.benchmarks.scenarios.flows.scenario:FlowsScenario",
    "gateway": "nightwire.benchmarks.scenarios.gateway.scenario:GatewayScenario",
    "growth": "nightwire.benchmarks.scenarios.growth.scenario:GrowthScenario",
    "messages": "nightwire.benchmarks.scenarios.messages.scenario:MessagesScenario",
    "multicast": "nightwire.benchmarks.scenarios.multicast.scenario:MulticastScenario",
    "night": "nightwire.benchmarks.scenarios.night.scenario:NightScenario",
    "portal": "nightwire.benchmarks.scenarios.portal.scenario:PortalScenario",
    "stretch": "nightwire.benchmarks.scenarios.stretch.scenario:StretchScenario",
    "typed": "nightwire.benchmarks.scenarios.typed.scenario:TypedScenario",
    "visit": "nightwire.benchmarks.scenarios.visit.scenario:VisitScenario",
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
