"""Parts of flows at work: plans of stones, run by Kafka's transactions."""

from nightwire.flows.engine.bridge import Bridge
from nightwire.flows.engine.leftovers import drop_leftovers, purge, waiting
from nightwire.flows.engine.part import PartRunner
from nightwire.flows.engine.plan import Plan, compile_part, made_by, queues
from nightwire.flows.engine.terminal_runner import TerminalRunner

__all__ = [
    "Bridge",
    "PartRunner",
    "Plan",
    "TerminalRunner",
    "compile_part",
    "drop_leftovers",
    "made_by",
    "purge",
    "queues",
    "waiting",
]
