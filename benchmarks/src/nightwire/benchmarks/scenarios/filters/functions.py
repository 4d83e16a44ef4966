"""What one has without an engine: a Python function per filter, called for each decoded alert.

``python -m nightwire.benchmarks.scenarios.filters.functions '{"bootstrap": …}'`` finds what a
`reader` finds.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from nightwire.benchmarks.workers.alerts.reader import Handle, TopicReader, bodies
from nightwire.benchmarks.workers.worker import emit, first_order
from nightwire.filters.language import compile_filter
from nightwire.schemas import Codec, sim_alert_schema, survey


def calling(sources: Sequence[str]) -> Handle:
    """Return what calls the functions of all *sources* for each alert."""
    keeps = [compile_filter(source, "keep") for source in sources]
    codec, sim = Codec(sim_alert_schema()), survey("sim")

    def handle(messages: Sequence[Message]) -> None:
        for body in bodies(messages):
            alert = sim.view(codec.decode(body))
            for keep in keeps:
                keep(alert)

    return handle


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Read ``expect`` alerts of ``topic``; call the functions in ``sources`` for each."""
    handle = calling(json.loads(Path(order["sources"]).read_text()))
    with TopicReader(order["bootstrap"], [order["topic"]], handle, whole=True) as reader:
        emit({"ready": True})
        return vars(reader.read(order["expect"]))


if __name__ == "__main__":
    emit(run(first_order()))
