"""A flow reads and writes what who made it may, and nothing else."""

from datetime import UTC, datetime

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from nightwire.core.access import ReadRights
from nightwire.core.runtime import Endpoints
from nightwire.flows.log import FlowRecord
from nightwire.flows.model import parse
from nightwire.flows.worker import Worker, WorkerSettings, missing_rights
from nightwire.schemas import SchemaRegistry

FLOW = """
name = "a"
[sources.s]
topic = "{source}"
[stones.t]
kind = "topic"
from = "s"
topic = "{output}"
"""


def right(operation: AclOperation, topic: str) -> AclBinding:
    """Return a right of eve's to *topic*."""
    allow, literal = AclPermissionType.ALLOW, ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, topic, literal, "User:eve", "*", operation, allow)


RIGHTS = ReadRights([right(AclOperation.READ, "alerts.sim"), right(AclOperation.WRITE, "hers")], ["User:op"])


@pytest.mark.parametrize(
    ("owner", "source", "output", "wrong"),
    [
        ("eve", "alerts.sim", "hers", []),
        ("eve", "alerts.sim", "broker.eve.x", []),
        (
            "eve",
            "alerts.sim",
            "broker.evelyn.x",
            ["eve may not write broker.evelyn.x; broker.eve.STREAM he may"],
        ),
        ("eve", "filter.ann.x", "hers", ["eve may not read filter.ann.x"]),
        ("op", "filter.ann.x", "anything", []),
        ("nobody", "alerts.sim", "broker.nobody.x", ["nobody may not read alerts.sim"]),
    ],
)
def test_what_a_flow_may_is_what_its_owner_may(
    owner: str, source: str, output: str, wrong: list[str]
) -> None:
    flow = parse(FLOW.format(source=source, output=output))
    assert [*missing_rights(flow, owner, RIGHTS)] == wrong
    assert [*missing_rights(flow, owner, ReadRights())] == []  # where Kafka asks nobody


def test_a_flow_without_rights_does_not_run_and_says_why() -> None:
    worker = Worker(WorkerSettings(Endpoints("127.0.0.1:1", ""), "m"), SchemaRegistry(None), RIGHTS)
    text = FLOW.format(source="filter.ann.x", output="broker.eve.x")
    worker.follow({"a": (FlowRecord("a", text, False, "eve", datetime.now(UTC)), 1)})
    assert worker.problems == {"a": "eve may not read filter.ann.x"}
    assert worker.by_flow() == {"a": []}
