"""Why flows do not run as they should: what workers say in the compacted topic `flow-problems`.

The key is flow, worker and stone, the value JSON.  A worker says again what stands; what nobody
said for `STANDS` is of one that ended.
"""

import json
import time
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import KafkaException

from nightwire.core.kafka import read_to_end
from nightwire.core.subscriptions.flows import ask_for_flows
from nightwire.schemas.topics import FLOW_PROBLEMS

SAID_AGAIN = 600.0
"""Time after which a worker says again what stands. [s]"""
STANDS = 3 * SAID_AGAIN
"""For how long it is believed. [s]"""


@dataclass(frozen=True)
class FlowProblem:
    """What a worker cannot do of a flow.

    Attributes:
        flow: The flow.
        worker: Who says so.
        stone: The terminal, or the part; empty where nothing of this version runs.
        version: Of the flow: the offset of its record.
        since: For how long. [UTC, ISO 8601]
        why: In plain words, the refused line named.
    """

    flow: str
    worker: str
    stone: str
    version: int
    since: str
    why: str


def said_problems(bootstrap: str) -> list[FlowProblem]:
    """Return what workers say now.

    Raises:
        KafkaException: Kafka does not answer, or keeps it from us.
    """
    found: dict[bytes, FlowProblem | None] = {}
    for message in read_to_end(bootstrap, [FLOW_PROBLEMS]):
        stands, key = message.timestamp()[1] > (time.time() - STANDS) * 1000, message.key() or b""
        found[key] = None
        with suppress(ValueError, TypeError):
            found[key] = FlowProblem(**json.loads(message.value() or b"")) if stands else None
    return [one for one in found.values() if one is not None]


def read_problems(bootstrap: str) -> list[FlowProblem]:
    """Return what workers say now; where Kafka asks for passwords, of an owner's own flows.

    Raises:
        FlowDeniedError: Kafka keeps it from us, and no directory is known.
        SiteHttpError: The directory refuses.
    """
    try:
        return said_problems(bootstrap)
    except KafkaException as error:
        answer = ask_for_flows(bootstrap, error, "GET", "/flows")
        return [FlowProblem(**one) for one in answer.get("problems", ())]
