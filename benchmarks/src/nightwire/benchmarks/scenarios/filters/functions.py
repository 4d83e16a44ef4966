"""What one has without an engine: a Python function per filter, called for each decoded alert.

``python -m nightwire.benchmarks.scenarios.filters.functions '{"bootstrap": …}'`` says what `_reader` does: a line when
it is in place, and one with its findings.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from nightwire.benchmarks.workers.alerts.reader import TopicReader, bodies
from nightwire.benchmarks.workers.worker import emit
from nightwire.core.kafka import admin, consumer
from nightwire.filters.language import compile_filter
from nightwire.schemas import Codec, sim_alert_schema, survey


def judge(sources: Sequence[str]) -> Callable[[Sequence[Message]], None]:
    """Return what calls the functions of all *sources* for each of some alerts."""
    keeps = [compile_filter(source, "keep") for source in sources]
    codec, sim = Codec(sim_alert_schema()), survey("sim")

    def work(messages: Sequence[Message]) -> None:
        for body in bodies(messages):
            alert = sim.view(codec.decode(body))
            for keep in keeps:
                keep(alert)

    return work


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Read ``expect`` alerts of ``topics`` from the beginning; judge each by the functions in ``sources``."""
    sources = json.loads(Path(order["sources"]).read_text())
    client = consumer(order["bootstrap"])
    try:
        reader = TopicReader(client, admin(order["bootstrap"]), order["topics"], judge(sources), whole=True)
        emit({"ready": True})
        began = time.process_time()
        reader.read(lambda: reader.findings.records >= order["expect"])
        reader.findings.cpu = time.process_time() - began
        return vars(reader.findings)
    finally:
        client.close()


if __name__ == "__main__":
    emit(run(json.loads(sys.argv[1])))
