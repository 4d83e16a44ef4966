"""The settings of an engine."""

from dataclasses import dataclass, field
from pathlib import Path

from nightwire.core.catalogues import catalogues_of
from nightwire.filters.admission.trial import AdmissionPolicy
from nightwire.filters.decision.apply_quotas import DEADLINE
from nightwire.filters.evaluation.cpu_budget import FILTER_CPU_S


@dataclass(frozen=True)
class EngineSettings:
    """The settings of an engine.

    Attributes:
        bootstrap: Kafka's address.
        registry: URL of the schema registry.
        state: Directory; see `State`.
        master: Spark master.
        memory: Heap of Spark's Java process.
        batch: Most records in a batch; `BatchSizeController` says how many it has.
        tasks: Tasks per batch; one for each core of a small machine.
        budget: CPU time of one filter in one task. [s]
        deadline: Longest that a visit is held for its best alerts. [s]
        page: Whether Spark tells Prometheus about itself.
        sandbox: How filters that are code are contained: ``strong``, ``weak`` or ``none``.
        trial: What a filter must satisfy before it goes live.
        slow_processes: Processes of the slow lanes.
        archive: URL of the archive, which has what Kafka has forgotten; None for none.
        most_behind: From so far behind the quick lane on, a slow one leaves alerts out. [s]
    """

    bootstrap: str
    registry: str
    state: Path
    master: str = "local[2,4]"
    memory: str = "768m"
    batch: int = 10_000
    tasks: int = 2
    budget: float = FILTER_CPU_S
    deadline: float = DEADLINE / 1000
    page: bool = False
    sandbox: str = "strong"
    trial: AdmissionPolicy = field(default_factory=AdmissionPolicy)
    slow_processes: int = 1
    most_behind: float = 600.0
    archive: str | None = None

    def options(self) -> dict[str, str]:
        """Return them as options of the data source."""
        names = ("bootstrap", "registry", "state", "batch", "tasks", "budget", "deadline", "sandbox")
        catalogues = str(catalogues_of(self.state).folder)
        return {name: str(getattr(self, name)) for name in names} | {"catalogues": catalogues}
