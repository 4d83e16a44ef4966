"""The gateway, with time stamps of each event.

``python -m nightwire.benchmarks.scenarios.gateway.traced FILE gateway serve …`` writes a line into FILE for each
stamp: what, ivorn, time of the machine's monotonic clock [s].  *in*: the last byte is there; *produced*: it
goes to Kafka; *acknowledged*: Kafka has it; *fetched*: it came back from the log.  What is measured is
wrapped from outside, so the gateway itself carries none of this.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from confluent_kafka import Message

from nightwire.core.cli import main
from nightwire.gateway import Packet
from nightwire.gateway.eventlog import Acknowledged, EventDecoder, LoopProducer
from nightwire.gateway.ingest import authors as _authors


def trace(out: TextIO) -> None:
    """Write stamps of everything that the gateway does from now on."""

    def stamp(what: str, ivorn: str, at: float) -> None:
        out.write(f"{what}\t{ivorn}\t{at!r}\n")

    judge: Callable[..., Packet] = _authors.author_packet  # type: ignore[attr-defined]
    begin, event = LoopProducer.begin, EventDecoder.event

    def author_packet(*document: Any) -> Packet:
        at = time.monotonic()
        packet = judge(*document)
        stamp("in", packet.ivorn, at)
        return packet

    def produced(self: LoopProducer, *what: Any, key: bytes, **rest: Any) -> Acknowledged:
        stamp("produced", key.decode(), time.monotonic())
        future = begin(self, *what, key=key, **rest)
        future.add_done_callback(lambda _: stamp("acknowledged", key.decode(), time.monotonic()))
        return future

    def fetched(self: EventDecoder, message: Message) -> Any:
        stamp("fetched", (message.key() or b"").decode(), time.monotonic())
        return event(self, message)

    _authors.author_packet = author_packet  # type: ignore[attr-defined, assignment]
    LoopProducer.begin = produced  # type: ignore[method-assign]
    EventDecoder.event = fetched  # type: ignore[method-assign]


def read_trace(path: Path, run: str) -> dict[str, dict[int, float]]:
    """Return the first stamp of each kind of each event of *run*, by number."""
    found: dict[str, dict[int, float]] = {}
    for line in path.read_text().splitlines():
        what, ivorn, at = line.split("\t")
        _, mine, number = ivorn.rpartition(f"#{run}-")
        if mine:
            found.setdefault(what, {}).setdefault(int(number), float(at))
    return found


def main() -> None:
    """Run the command behind the first word."""
    path = Path(sys.argv.pop(1))
    with path.open("w", buffering=1) as out:
        trace(out)
        main()


if __name__ == "__main__":
    main()
