"""The gateway, with time stamps of each event.

``python -m nightwire.benchmarks.scenarios.gateway.traced FILE gateway serve …`` writes a line into
FILE for each stamp: what, ivorn, time of the machine's monotonic clock [s].  *in*: the last byte is
there; *produced*: it goes to Kafka; *acknowledged*: Kafka has it; *fetched*: it came back from the
log.  What is measured is wrapped from outside, so the gateway itself carries none of this.
"""

import runpy
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from confluent_kafka import Message

from nightwire.core.kafka import DeliveryError
from nightwire.gateway import Packet
from nightwire.gateway.eventlog import Acknowledged, Deduplicator, EventDecoder, LoopProducer
from nightwire.gateway.ingest import AuthorService


def trace(out: TextIO) -> None:
    """Write stamps of everything that the gateway does from now on."""
    submit, admit = AuthorService.submit, Deduplicator.begin
    produce, decode = LoopProducer.begin, EventDecoder.event
    arrived = 0.0

    def stamp(what: str, ivorn: str, at: float) -> None:
        out.write(f"{what}\t{ivorn}\t{at!r}\n")

    def submitted(self: AuthorService, *document: Any, **rest: Any) -> None:
        nonlocal arrived
        arrived = time.monotonic()
        submit(self, *document, **rest)

    def admitted(self: Deduplicator, packet: Packet, *rest: Any) -> None:
        stamp("in", packet.ivorn, arrived)  # called within `submit`
        admit(self, packet, *rest)

    def produced(self: LoopProducer, *what: Any, key: bytes, acknowledged: Acknowledged, **rest: Any) -> None:
        def reported(error: DeliveryError | None) -> None:
            stamp("acknowledged", key.decode(), time.monotonic())
            acknowledged(error)

        stamp("produced", key.decode(), time.monotonic())
        produce(self, *what, key=key, acknowledged=reported, **rest)

    def fetched(self: EventDecoder, message: Message) -> Any:
        stamp("fetched", (message.key() or b"").decode(), time.monotonic())
        return decode(self, message)

    AuthorService.submit = submitted  # type: ignore[method-assign]
    Deduplicator.begin = admitted  # type: ignore[method-assign, assignment]
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
        runpy.run_module("nightwire.core.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
