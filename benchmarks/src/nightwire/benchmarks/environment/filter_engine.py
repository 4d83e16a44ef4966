"""The filter engine on a Kafka with our registry, and the filters that are live in it."""

import json
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self

import httpx
import psutil
from confluent_kafka import TopicPartition

from nightwire.benchmarks import Context, RunError
from nightwire.benchmarks.environment.cluster import PARTITIONS, Cluster
from nightwire.benchmarks.environment.filter_mixture import MixedFilter
from nightwire.benchmarks.environment.machine import CLONE
from nightwire.benchmarks.environment.processes import Child, ChildError, nightwire, server_process
from nightwire.core.kafka import Writer, consumer, ensure_topics, producer
from nightwire.core.stack import free_port
from nightwire.filters.model import Compilation, compile_request
from nightwire.schemas import records, topics
from nightwire.schemas.topics import ACCOUNTS, TopicSettings

STAGE, SLOW = "filters", "filters-slow"
"""Stages of the quick lane, and of owners' slow ones."""
QUICK = ""
"""Stands for the quick lane, which has no owner."""
PATIENCE = 120.0
"""Longest wait for the next account. [s]"""


class Coverage:
    """Listens to `accounts` from now on.

    Attributes:
        passed: Records of *topic* that passed at least one filter of the quick lane, so far.
        evaluated: Records that each filter judged, so far.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._client = consumer(bootstrap)
        self._covered: dict[tuple[str, int], int] = {}
        self.passed = 0
        self.evaluated: dict[str, int] = {}
        spot = TopicPartition(ACCOUNTS, 0)
        marks = self._client.get_watermark_offsets(spot, timeout=10, cached=False)
        self._client.assign([TopicPartition(ACCOUNTS, 0, marks[1] if marks else 0)])

    def await_ends(self, ends: Mapping[int, int], slow: Callable[[], Collection[str]] = tuple) -> float:
        """Wait until the engine has accounted for all before *ends*; return when that was last.

        The time is that of the machine's monotonic clock. [s]

        Args:
            ends: The offset after the last record, by partition.
            slow: Returns owners whose slow lanes are waited for, beside the quick lane.

        Raises:
            RunError: The engine wrote no account for too long.
        """
        deadline = time.monotonic() + PATIENCE
        while missing := self._missing(ends, (QUICK, *slow())):
            message = self._client.poll(0.05)
            if message is None:
                if time.monotonic() > deadline:
                    raise RunError(f"the filter engine wrote no account for {PATIENCE:g} s; open: {missing}")
                continue
            deadline = time.monotonic() + PATIENCE
            if message.error() is None and (value := message.value()) is not None:
                self._count(value)
        return time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._client.close()

    def _missing(self, ends: Mapping[int, int], lanes: Iterable[str]) -> dict[tuple[str, int], int]:
        left = {
            (lane, part): end - self._covered.get((lane, part), 0)
            for lane in lanes
            for part, end in ends.items()
        }
        return {spot: count for spot, count in left.items() if count > 0}

    def _count(self, value: bytes) -> None:
        account = records.ACCOUNT.decode(value)
        if account["stage"] not in (STAGE, SLOW) or (lane := lane_of(account["source"], self._topic)) is None:
            return
        spot = lane, account["partition"]
        self._covered[spot] = max(self._covered.get(spot, 0), account["last"] + 1)
        if lane == QUICK:
            self.passed += account["delivered"]
        for name, classes in account["filters"].items():
            self.evaluated[name] = self.evaluated.get(name, 0) + classes["evaluated"]


def lane_of(source: str, topic: str) -> str | None:
    """Return the owner of the lane that has an account's *source*, if it is of *topic*.

    The quick lane's is the topic itself, a slow one's ``filters-slow/<owner>.<number>/<topic>``.
    """
    if source == topic:
        return QUICK
    stage, _, rest = source.partition("/")
    lane, _, what = rest.partition("/")
    return lane.partition(".")[0] if (stage, what) == (SLOW, topic) else None


ALERTS = topics.alerts("sim")
CONTROL = (
    topics.VISITS,
    topics.VOEVENTS,
    topics.FILTERS,
    topics.ACCOUNTS,
    topics.DEAD_LETTERS,
    topics.SCHEMAS,
)
OWNER = "bench"
NOTEBOOKS = CLONE / "filters" / "notebooks"
EXAMPLES = 3
CAP = 20
"""Most alerts of a visit that each filter is sent."""


@dataclass(frozen=True)
class EngineOptions:
    """How the engine runs, and what its filters are like.

    Attributes:
        light: Without Spark and Java, for a quick start.
        cap: Most alerts of a visit that each filter is sent; 0: all that pass.
        examples: Whether the example filters are submitted when the engine starts.
        keeps: What Kafka keeps of each filter's copies; 0: all. [byte]
    """

    light: bool = False
    cap: int = CAP
    examples: bool = False
    keeps: int = 0


class FilterEngine(Cluster):
    """A Kafka, a registry and the engine; each is started when it is first needed.

    Attributes:
        filters: Topics of what passes each filter, by ``owner/name``.
    """

    def __init__(self, context: Context, options: EngineOptions | None = None) -> None:
        super().__init__(context)
        self.filters: dict[str, str] = {}
        self._options = options or EngineOptions()
        self._topics: set[str] = set()
        self._child: Child | None = None
        self._page = 0

    def start(self) -> None:
        """Start the engine and submit the example filters, unless that was done.

        Raises:
            ChildError: It did not start, or refused a filter.
        """
        self._make_topics(CONTROL)
        if self._child is None and self._context.engine == "own":
            self._child = self._start_engine()
        if self._options.examples and not self.filters:
            self.filters = {name: self._submit(name, path) for name, path in example_filters().items()}

    def live(self, filters: Sequence[MixedFilter]) -> None:
        """Make *filters* live, and no others; start the engine unless it runs.

        Raises:
            ChildError: It did not start.
        """
        topics_of = self.make_topics(filters)
        wanted = {one.key: one for one in filters}
        self._write(one for key, one in wanted.items() if key not in self.filters)
        self._remove(key for key in self.filters if key not in wanted)
        self.filters = topics_of
        self.start()

    def make_topics(self, filters: Sequence[MixedFilter]) -> dict[str, str]:
        """Make the topics of *filters*; return those of what passes them, by ``owner/name``."""
        named = (topics.filter_topic, topics.overflow)
        owned = {name(one.owner, one.name) for one in filters for name in named}
        self._make_topics({*CONTROL, *owned, *(topics.answers(one.owner) for one in filters)})
        return {one.key: topics.filter_topic(one.owner, one.name) for one in filters}

    def kill(self) -> None:
        """Kill the engine and its Java with -9, as a power cut would."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def coverage(self) -> Coverage:
        """Return a listener to the engine's accounts of the alerts' topic, from now on."""
        return Coverage(self.bootstrap, ALERTS)

    def forget(self, ends: Mapping[int, int]) -> None:
        """Let Kafka delete the alerts before *ends*, by partition."""
        self.delete_before({(ALERTS, part): end for part, end in ends.items()})

    def metrics(self) -> str:
        """Return the engine's page of metrics; nothing where it is not ours."""
        if not self._page:
            return ""
        return httpx.get(f"http://127.0.0.1:{self._page}/metrics", timeout=30).text

    def slow_filters(self) -> set[str]:
        """Return the filters in slow lanes that go on, as the state of an engine of ours says."""
        found: set[str] = set()
        for path in (self._state / "lanes").glob("*/schedule.json"):
            with suppress(FileNotFoundError):  # a lane that has ended is removed
                changes = json.loads(path.read_text())["changes"]
                found.update(key for key, _version in changes[-1]["names"])
        return found

    def slow_owners(self) -> set[str]:
        """Return the owners of slow lanes that go on."""
        return {key.partition("/")[0] for key in self.slow_filters()}

    def engine_cpu(self) -> float:
        """Return the CPU time of the engine's processes so far [s]; 0 where it is not ours."""
        if self._child is None:
            return 0.0
        first = psutil.Process(self._child.process.pid)
        total = 0.0
        for one in (first, *first.children(recursive=True)):
            with suppress(psutil.Error):  # its parent has counted one that just ended
                times = one.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def close(self) -> None:
        """End what was started, and leave no filter of ours in an engine that goes on running."""
        if self._context.engine == "there" and self.filters:
            self._withdraw() if self._options.examples else self._remove(self.filters)
        super().close()
        self.filters = {}

    @property
    def _state(self) -> Path:
        return self._context.folder / "filters"

    def _make_topics(self, names: Iterable[str]) -> None:
        # a visit must be there until it is judged, so the alerts' topic is not cut by its size
        sim = topics.settings(ALERTS)
        alerts = TopicSettings(sim.name, PARTITIONS, {**sim.config, "retention.bytes": "-1"})
        if fresh := sorted({*names} - self._topics):
            ensure_topics(self.bootstrap, [alerts, *map(self._settings, fresh)], timeout=240)
            self._topics |= set(fresh)

    def _settings(self, name: str) -> TopicSettings:
        """Return the settings of a topic; those of copies are bounded where that is wanted."""
        usual, half = topics.settings(name), str(self._options.keeps // 2)
        if not self._options.keeps or not name.startswith("filter."):
            return usual
        bound = {"segment.bytes": half, "retention.bytes": half}
        return TopicSettings(name, usual.partitions, {**usual.config, **bound})

    def _write(self, filters: Iterable[MixedFilter]) -> None:
        writer = Writer(producer(self.bootstrap))
        for one in filters:
            body = records.FILTER.encode(filter_record(one, self._options.cap))
            for key in (f"{one.key}/1", one.key):
                writer.write(topics.FILTERS, body, key=key.encode())
        writer.flush()

    def _remove(self, keys: Iterable[str]) -> None:
        writer = Writer(producer(self.bootstrap))
        for key in keys:
            writer.write(topics.FILTERS, None, key=key.encode())
        writer.flush()

    def _start_engine(self) -> Child:
        self._context.say("starting the filter engine")
        where = ["--bootstrap", self.bootstrap, "--registry", self._registry]
        state = ["--state", str(self._state)]
        words = ["filter", "run", *where, *state, *(["--light"] if self._options.light else [])]
        self._page = free_port()
        engine = server_process(self._context, "filters", *words, page=self._page)
        return self.exits.enter_context(engine)

    @cached_property
    def _registry(self) -> str:
        self._context.say("starting the schema registry")
        port = free_port()
        words = ["schema", "serve", "--bootstrap", self.bootstrap, "--port", str(port)]
        self.exits.enter_context(server_process(self._context, "registry", *words))
        return f"http://127.0.0.1:{port}"

    def _submit(self, name: str, path: Path) -> str:
        self._context.say(f"submitting the filter {name}")
        if trouble := self._owners_verb("submit", str(path), "--name", name):
            raise ChildError(f"the filter {path.name} was not taken: {trouble}")
        return topics.filter_topic(OWNER, name)

    def _withdraw(self) -> None:
        """Remove the example filters, as their owner does."""
        for name in self.filters:
            if trouble := self._owners_verb("remove", name):
                self._context.say(f"the filter {OWNER}/{name} stays live: {trouble}")

    def _owners_verb(self, *words: str) -> str:
        """Run a verb of filters as the example filters' owner; return what it said if it failed."""
        command = nightwire("filter", *words, "--bootstrap", self.bootstrap, "--owner", OWNER)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
        return f"{done.stdout}{done.stderr}" if done.returncode else ""


def filter_record(one: MixedFilter, cap: int) -> dict[str, Any]:
    """Return the record of a filter, as the engine would write it on accepting it."""
    compiled = _compiled(one.source, sql=one.kind.sql)
    return _request(one.source, sql=one.kind.sql) | {
        "owner": one.owner,
        "name": one.name,
        "version": 1,
        "live": True,
        "cap": cap,
        "fields": list(compiled.fields),
        "program": compiled.text,
        "facts": compiled.facts,
        "remarks": list(compiled.remarks),
        "cost_us": one.kind.cost_us,
        "submitted": datetime.now(UTC),
    }


def _request(source: str, *, sql: bool) -> dict[str, Any]:
    language, entry = ("sql", "") if sql else ("python", "keep")
    return {"survey": "sim", "language": language, "source": source, "entry": entry}


@cache
def _compiled(source: str, *, sql: bool) -> Compilation:
    return compile_request(_request(source, sql=sql))


def example_filters(folder: Path = NOTEBOOKS) -> Mapping[str, Path]:
    """Return the first three example filters, by name.

    Raises:
        ChildError: There are fewer.
    """
    found = sorted(folder.glob("*.ipynb"))[:EXAMPLES]
    if len(found) < EXAMPLES:
        raise ChildError(f"{folder} holds {len(found)} example filters, {EXAMPLES} are needed")
    return {path.stem.lower().replace("_", "-"): path for path in found}
