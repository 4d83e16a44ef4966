"""What the scenario runs against: a Kafka, and for the filters our registry and the real engine."""

import subprocess
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from confluent_kafka import Message

from nightwire.benchmarks.environment.cluster import PARTITIONS, Cluster
from nightwire.benchmarks.environment.coverage import Coverage
from nightwire.benchmarks.environment.processes import Child, ChildError, nightwire
from nightwire.benchmarks.model.scenario import Context
from nightwire.core.kafka import ensure_topics
from nightwire.core.stack import free_port
from nightwire.schemas import topics
from nightwire.schemas.topics import TopicSettings

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
NOTEBOOKS = Path(__file__).resolve().parents[5] / "filters" / "notebooks"
EXAMPLES = 3


class Services(Cluster):
    """Starts what is asked for when it is first asked for; `close` ends all of it."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.filters: dict[str, str] = {}
        self._pages: dict[str, int] = {}

    def engine(self) -> None:
        """Start the filter engine with the example filters, unless that was done.

        Raises:
            ChildError: It did not start, or refused a filter.
        """
        if self.filters:
            return
        # all that a visit holds must be there until it is judged, so this topic is not cut by its size
        sim = topics.settings(ALERTS)
        kept = TopicSettings(sim.name, PARTITIONS, {**sim.config, "retention.bytes": "-1"})
        ensure_topics(self.bootstrap, [*(topics.settings(name) for name in CONTROL), kept])
        if self._context.engine == "own":
            self._start_engine()
        for name, path in example_filters().items():
            self.filters[name] = self._submit(name, path)

    def coverage(self) -> Coverage:
        """Return a listener to the filter engine's accounts of the alerts' topic, from now on."""
        return Coverage(self.bootstrap, ALERTS)

    def delivered(self) -> tuple[Callable[[Message], None], dict[int, int]]:
        """Return a delivery callback, and the offset after the last record of each partition that it saw."""
        ends: dict[int, int] = {}

        def note(message: Message) -> None:
            part, offset = message.partition() or 0, message.offset() or 0
            ends[part] = max(ends.get(part, 0), offset + 1)

        return note, ends

    def close(self) -> None:
        """End everything that was started, the last first."""
        super().close()
        self.filters = {}

    def _start_engine(self) -> Child:
        where = ["--bootstrap", self.bootstrap, "--registry", self._registry]
        self._context.say("starting the filter engine")
        return self._child(
            "filters", "filter", "run", *where, "--state", str(self._context.folder / "filters")
        )

    @cached_property
    def _registry(self) -> str:
        self._context.say("starting the schema registry")
        port = free_port()
        self._child("registry", "schema", "serve", "--bootstrap", self.bootstrap, "--port", str(port))
        return f"http://127.0.0.1:{port}"

    def _child(self, role: str, *words: str) -> Child:
        page = self._pages[role] = free_port()
        command = [*nightwire(*words), "--metrics-port", str(page)]
        child = self._exits.enter_context(Child(command, self._context.folder / f"{role}.log"))
        self._context.role(child.process.pid, role)
        child.await_health(page)
        return child

    def _submit(self, name: str, path: Path) -> str:
        self._context.say(f"submitting the filter {name}")
        where = ["--bootstrap", self.bootstrap, "--owner", OWNER, "--name", name]
        command = nightwire("filter", "submit", str(path), *where)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
        if done.returncode:
            raise ChildError(f"the filter {path.name} was not taken: {done.stdout}{done.stderr}")
        if self._context.engine == "there":
            self._exits.callback(self._remove, name)
        return topics.filter_topic(OWNER, name)

    def _remove(self, name: str) -> None:
        """Leave no filter of ours in an engine that goes on running."""
        where = ["--bootstrap", self.bootstrap, "--owner", OWNER]
        done = subprocess.run(
            nightwire("filter", "remove", name, *where),
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        if done.returncode:
            self._context.say(f"the filter {OWNER}/{name} stays live: {done.stdout}{done.stderr}")


def example_filters(folder: Path = NOTEBOOKS) -> Mapping[str, Path]:
    """Return the first three example filters, by name.

    Raises:
        ChildError: There are fewer.
    """
    found = sorted(folder.glob("*.ipynb"))[:EXAMPLES]
    if len(found) < EXAMPLES:
        raise ChildError(f"{folder} holds {len(found)} example filters, {EXAMPLES} are needed")
    return {path.stem.lower().replace("_", "-"): path for path in found}
