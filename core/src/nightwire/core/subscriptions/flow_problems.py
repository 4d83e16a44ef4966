"""Problems of flows, as workers report them in the compacted topic `flow-problems`.

The key is flow, worker and stone, the value JSON.  A worker repeats its problems; one that was not
repeated for `EXPIRY` is of a worker that ended.
"""

import json
import time
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import KafkaException

from nightwire.core.kafka import read_to_end
from nightwire.core.subscriptions.flows import ask_for_flows
from nightwire.schemas.topics import FLOW_PROBLEMS

REPEAT_INTERVAL = 600.0
"""Time after which a worker repeats its problems. [s]"""
EXPIRY = 3 * REPEAT_INTERVAL
"""Time for which a reported problem counts. [s]"""


@dataclass(frozen=True)
class FlowProblem:
    """The reason why a worker does not run a flow, or a stone of it.

    Attributes:
        flow: The flow.
        worker: Name of the worker.
        stone: The terminal, or the part; empty where nothing of this version runs.
        version: The flow's: the offset of its record.
        since: When it began. [UTC, ISO 8601]
        why: In plain words, the refused line named.
    """

    flow: str
    worker: str
    stone: str
    version: int
    since: str
    why: str


def reported_problems(bootstrap: str) -> list[FlowProblem]:
    """Return the problems of all flows.

    Raises:
        KafkaException: Kafka does not answer, or denies us the topic.
    """
    found: dict[bytes, FlowProblem | None] = {}
    for message in read_to_end(bootstrap, [FLOW_PROBLEMS]):
        stands, key = message.timestamp()[1] > (time.time() - EXPIRY) * 1000, message.key() or b""
        found[key] = None
        with suppress(ValueError, TypeError):
            found[key] = FlowProblem(**json.loads(message.value() or b"")) if stands else None
    return [one for one in found.values() if one is not None]


def read_problems(bootstrap: str) -> list[FlowProblem]:
    """Return the problems of all flows; where Kafka asks for passwords, of an owner's own.

    Raises:
        FlowDeniedError: Kafka denies us the topic, and no directory answers.
        SiteHttpError: The directory refuses.
    """
    try:
        return reported_problems(bootstrap)
    except KafkaException as error:
        answer = ask_for_flows(bootstrap, error, "GET", "/flows")
        return [FlowProblem(**one) for one in answer.get("problems", ())]
