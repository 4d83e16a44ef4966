"""Parts of flows at work: plans of stones, run by Kafka's transactions."""

from nightwire.flows.engine.part import PartRunner
from nightwire.flows.engine.plan import Plan, compile_part, queues

__all__ = ["PartRunner", "Plan", "compile_part", "queues"]
