"""Trying a filter on recent alerts before it goes live, in a process of its own that can be stopped.

The parent calls `try_out`; the child is this module run as a program: a line of JSON and the records on its
standard input, the result as JSON on its standard output.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from nightwire.filters._judge import Compiled, Judge, LiveFilter, Tally
from nightwire.filters._limits import time_limit
from nightwire.filters._recent import Sample
from nightwire.schemas import AlertDecoder, AlertView, DecodeError, SchemaError, SchemaRegistry, survey

SECONDS = 20.0
"""Longest trial, the child's start included. [s]"""

WARM = 20
"""Fewest alerts from which the cost of one is told."""


@dataclass(frozen=True)
class Rules:
    """What an operator asks of a filter before it goes live.

    Attributes:
        alerts: Recent alerts of each survey that it is tried on.
        share: Largest part of them that may pass.  Not asked of filters that send the `best` few of a visit,
            where the cap says how many, nor of fewer alerts than *fewest*.
        fewest: Alerts that a share is told from.
        cpu_ms: CPU time that an alert may cost on average: what a batch has, over the alerts of a batch. [ms]
        memory_mb: Memory that the filter may take. [MB]
        untried: Whether an owner may submit a filter without a trial.
    """

    alerts: int = 300
    share: float = 0.05
    fewest: int = 200
    cpu_ms: float = 0.8
    memory_mb: int = 1024
    untried: bool = False


@dataclass(frozen=True)
class Trial:
    """What a filter did with some recent alerts; *broken* says why it could not be tried at all."""

    evaluated: int = 0
    passed: int = 0
    faulted: int = 0
    fault: str | None = None
    late: bool = False
    cpu_ms: float | None = None
    broken: str | None = None

    def refusals(self, rules: Rules, *, best: bool = False) -> list[str]:
        """Return why the filter is refused; empty when it is not.  *best*: it sends the best of a visit."""
        if self.broken:
            return [self.broken]
        if self.late:
            return [f"too slow: {self.fault}"]
        if (self.fault or "").startswith("MemoryError"):
            return [f"too much memory: it takes more than {rules.memory_mb:,} MB: {self.fault}"]
        if self.evaluated and self.faulted == self.evaluated:
            return [f"failed on all of {self.evaluated} recent alerts: {self.fault}"]
        return [*self._too_dear(rules), *self._too_many(rules, best=best)]

    def _too_dear(self, rules: Rules) -> Iterator[str]:
        if self.cpu_ms is not None and self.cpu_ms > rules.cpu_ms:
            yield (
                f"too slow: {self.cpu_ms:.2f} ms of CPU time an alert, limit is {rules.cpu_ms:g} ms: "
                "ask the cheap and selective questions first"
            )

    def _too_many(self, rules: Rules, *, best: bool) -> Iterator[str]:
        if best or self.evaluated < rules.fewest or self.passed <= rules.share * self.evaluated:
            return
        yield (
            f"passes too much: {self.passed} of {self.evaluated} recent alerts, "
            f"{self.passed / self.evaluated:.1%}, limit is {rules.share:.0%}: "
            "ask for more, or return a rank and submit with --choice best"
        )

    def remark(self) -> str:
        """Return what the owner should know of an accepted filter."""
        if not self.evaluated:
            return "not tried: there are no alerts yet"
        said = f"tried on {self.evaluated} recent alerts: {self.passed} passed"
        if self.cpu_ms is not None:
            said += f", {1000 * self.cpu_ms:.0f} µs each"
        return f"{said}, {self.faulted} failed: {self.fault}" if self.faulted else said


def try_out(
    live: LiveFilter,
    samples: Sequence[Sample],
    registry: str,
    cache: Path,
    seconds: float = SECONDS,
    memory_mb: int = Rules.memory_mb,
) -> Trial:
    """Return what *live* does with *samples*; never longer than *seconds* [s]."""
    asked = {
        "filter": asdict(live), "registry": registry, "cache": str(cache), "memory_mb": memory_mb,
        "samples": [(name, len(value)) for name, value in samples],
    }  # fmt: skip
    try:
        done = subprocess.run(
            [sys.executable, "-m", "nightwire.filters._trial"],
            input=b"".join([json.dumps(asked).encode(), b"\n", *(value for _, value in samples)]),
            capture_output=True, timeout=seconds, check=True,
        )  # fmt: skip
        return Trial(**json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        return Trial(broken=f"too slow: the trial on {len(samples)} alerts took longer than {seconds:g} s")
    except subprocess.CalledProcessError as error:
        return Trial(broken=f"the trial ended badly: {_ended(error)}")
    except (ValueError, TypeError) as error:
        return Trial(broken=f"the trial ended badly: {error}")


def _ended(error: subprocess.CalledProcessError) -> str:
    if error.returncode < 0:
        return f"its process was killed by {signal.Signals(-error.returncode).name}"
    said: bytes = error.stderr or str(error).encode()
    return said.decode(errors="replace").strip()[-300:]


def _judge(live: LiveFilter, views: Sequence[AlertView]) -> Trial:
    one = Compiled(live, time_limit)
    if one.broken:
        return Trial(broken=one.broken)
    judge = Judge([one], time_limit)
    judge.judge(views[:1])  # what is slow only once is no cost of an alert
    began = time.process_time()
    judge.judge(views[1:])
    spent = time.process_time() - began
    tally = judge.tallies.get(live.key, Tally(live.version))
    cost = 1000 * spent / (len(views) - 1) if len(views) > WARM else None
    return Trial(tally.evaluated, tally.passed, tally.faulted, tally.fault, tally.late, cost)


def _views(
    samples: Sequence[Sequence[Any]], values: BinaryIO, registry: str, cache: str
) -> Iterator[AlertView]:
    decoder = AlertDecoder(SchemaRegistry(registry, cache_dir=Path(cache)))
    for name, length in samples:
        value = values.read(length)
        try:
            yield survey(name).view(decoder.decode(value).alert)
        except (DecodeError, SchemaError):
            continue  # the engine dead-letters it when it meets it


def _limit_memory(megabytes: int) -> None:
    """Let this process take so much memory more than it has. [MB]"""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    """Try the filter that standard input names; what it prints goes to standard error."""
    answer = os.dup(1)
    os.dup2(2, 1)
    asked = json.loads(sys.stdin.buffer.readline())
    views = list(_views(asked["samples"], sys.stdin.buffer, asked["registry"], asked["cache"]))
    _limit_memory(asked["memory_mb"])
    os.write(answer, json.dumps(asdict(_judge(LiveFilter(**asked["filter"]), views))).encode())


if __name__ == "__main__":
    main()
