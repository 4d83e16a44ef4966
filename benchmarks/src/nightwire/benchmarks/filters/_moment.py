"""From a moment to the first alert that is read: what a change and a start have in common."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from nightwire.benchmarks._scenario import Experiment, Figures, Kind, RunError
from nightwire.benchmarks._second import second_process
from nightwire.benchmarks.filters._visits import Ends, Setting


class Moment(Experiment):
    """Something happens; how soon is the first alert out?  There is no baseline.

    Args:
        it: What is measured.
    """

    at_most: Mapping[Kind, int] = {Kind.BASELINE: 0}
    figure = ""
    """Name of the time. [s]"""

    def __init__(self, it: Setting) -> None:
        self._it = it
        self.name = f"{self.figure.removesuffix('_seconds')}-{it.count}-filters"

    def prepare(self) -> None:
        """Make the filters live."""
        self._it.services.live(self._it.filters())

    def run_once(self, kind: Kind) -> Figures:
        """Return the time from that moment until an owner has read an alert.

        Raises:
            RunError: Nobody was sent any.
        """
        services, topics = self._it.services, self._topics()
        order = {"bootstrap": services.bootstrap, "topics": topics, "work": "bytes", "note": True}
        log = self._it.context.folder / "owners.log"
        with services.coverage() as coverage, second_process(self._it.context, order, log) as second:
            began, ends = self._act()
            coverage.await_ends(ends)
            arrivals = second.findings()["arrivals"]
        services.forget(ends)
        if not arrivals:
            raise RunError(f"{self.name}: no alert came")
        return {self.figure: float(min(when for *_, when in arrivals)) - began}

    @abstractmethod
    def _topics(self) -> Sequence[str]:
        """Return the topics that owners read; called before it happens."""

    @abstractmethod
    def _act(self) -> tuple[float, Ends]:
        """Let it happen; return when that was [s], and where the visit ends that was sent meanwhile."""
