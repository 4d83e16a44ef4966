"""Parts of flows at work: plans of stones, run by Kafka's transactions."""

from nightwire.flows.engine.bridge import Bridge
from nightwire.flows.engine.delivery import TerminalRunner
from nightwire.flows.engine.orphaned_queues import delete_orphaned_queues, purge, unread_counts
from nightwire.flows.engine.part import PartRunner
from nightwire.flows.engine.plan import Plan, compile_part, queue_topics, schema_topic

__all__ = [
    "Bridge",
    "PartRunner",
    "Plan",
    "TerminalRunner",
    "compile_part",
    "delete_orphaned_queues",
    "purge",
    "queue_topics",
    "schema_topic",
    "unread_counts",
]
