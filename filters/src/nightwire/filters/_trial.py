"""Trying a filter on recent alerts, in a process of its own that can be stopped from outside.

The parent calls `try_out`; the child is this module run as a program: a request on its standard input,
the result on its standard output, both JSON.
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from confluent_kafka import Consumer

from nightwire.core.kafka import marks
from nightwire.filters._fetch import fetch, reader
from nightwire.filters._judge import Compiled, Judge, LiveFilter, Tally
from nightwire.filters._limits import time_limit
from nightwire.filters._offsets import Range
from nightwire.schemas import AlertDecoder, DecodeError, SchemaError, SchemaRegistry, survey

SECONDS = 20.0
"""Longest trial, the child's start included. [s]"""

PER_PARTITION = 3
"""Recent alerts taken from each partition."""

Sample = tuple[str, bytes]
"""Survey and record."""


@dataclass(frozen=True)
class Trial:
    """What a filter did with some recent alerts; *broken* says why it could not be tried at all."""

    evaluated: int = 0
    passed: int = 0
    faulted: int = 0
    fault: str | None = None
    late: bool = False
    broken: str | None = None

    def refusal(self) -> str | None:
        """Return why the filter is refused, or None."""
        if self.broken:
            return self.broken
        if self.late:
            return f"too slow: {self.fault}"
        if self.evaluated and self.faulted == self.evaluated:
            return f"failed on all of {self.evaluated} recent alerts: {self.fault}"
        return None

    def remark(self) -> str:
        """Return what the owner should know of an accepted filter."""
        if not self.evaluated:
            return "not tried: there are no alerts yet"
        said = f"tried on {self.evaluated} recent alerts: {self.passed} passed"
        return f"{said}, {self.faulted} failed: {self.fault}" if self.faulted else said


def recent(bootstrap: str, surveys: Sequence[str], known: Mapping[str, int]) -> list[Sample]:
    """Return a few of the newest alerts of each of *surveys*; *known* says how many partitions topics have.

    Raises:
        KafkaException: Kafka does not answer.
    """
    consumer = reader(bootstrap)
    try:
        topics = [f"alerts.{name}" for name in surveys]
        spots = [(topic, part) for topic in topics if topic in known for part in range(known[topic])]
        return [sample for spot in spots for sample in _last(consumer, *spot)]
    finally:
        consumer.close()


def _last(consumer: Consumer, topic: str, part: int) -> Iterator[Sample]:
    first, end = marks(consumer, topic, part)
    for messages in fetch(consumer, Range(topic, part, max(first, end - PER_PARTITION), end), patience=10.0):
        yield from ((topic.partition(".")[2], message.value() or b"") for message in messages)


def try_out(
    live: LiveFilter, samples: Sequence[Sample], registry: str, cache: Path, seconds: float = SECONDS
) -> Trial:
    """Return what *live* does with *samples*; never longer than *seconds* [s]."""
    asked = {
        "filter": asdict(live),
        "registry": registry,
        "cache": str(cache),
        "samples": [(name, base64.b64encode(value).decode()) for name, value in samples],
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nightwire.filters._trial"],
            input=json.dumps(asked).encode(), capture_output=True, timeout=seconds, check=True,
        )  # fmt: skip
        return Trial(**json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return Trial(broken=f"too slow: the trial on {len(samples)} alerts took longer than {seconds:g} s")
    except (subprocess.CalledProcessError, ValueError, TypeError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        return Trial(broken=f"the trial ended badly: {said.decode(errors='replace').strip()[-300:]}")


def _judge(live: LiveFilter, samples: Sequence[Sample], registry: str, cache: Path) -> Trial:
    one = Compiled(live, time_limit)
    if one.broken:
        return Trial(broken=one.broken)
    decoder, views = AlertDecoder(SchemaRegistry(registry, cache_dir=cache)), []
    for name, value in samples:
        try:
            views.append(survey(name).view(decoder.decode(value).alert))
        except (DecodeError, SchemaError):
            continue  # the engine dead-letters it when it meets it
    judge = Judge([one], time_limit)
    judge.judge(views)
    tally = judge.tallies.get(live.key, Tally(live.version))
    return Trial(tally.evaluated, tally.passed, tally.faulted, tally.fault, tally.late)


def main() -> None:
    """Try the filter that standard input names; what it prints goes to standard error."""
    answer = os.dup(1)
    os.dup2(2, 1)
    asked = json.load(sys.stdin)
    samples = [(name, base64.b64decode(value)) for name, value in asked["samples"]]
    found = _judge(LiveFilter(**asked["filter"]), samples, asked["registry"], Path(asked["cache"]))
    os.write(answer, json.dumps(asdict(found)).encode())


if __name__ == "__main__":
    main()
