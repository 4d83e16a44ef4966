"""The streaming data source: Spark plans and checkpoints, our workers read and judge."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.engine.planner import Planner
from nightwire.filters.evaluation import worker
from nightwire.filters.model.messages import COLUMNS
from nightwire.filters.model.offsets import Offset, share_out, to_offset, version

FORMAT = "nightwire-filters"


class FilterSource(DataSource):
    """Alerts that passed, judged where they are read.

    Options: bootstrap, registry, state (directory), batch (records), tasks, budget (s per filter
        and task),
    deadline (longest that a visit is held, s), sandbox (strong, weak or none), catalogues
        (directory).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name under which Spark knows it."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of `nightwire.filters.model.messages.COLUMNS`."""
        return from_arrow_schema(COLUMNS)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader."""
        return FilterStreamReader(dict(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of nothing, to warm the workers with."""
        return WarmUpReader(dict(self.options))


class WarmUpReader(DataSourceReader):
    """One empty task per worker."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return as many tasks as a batch has."""
        return [
            InputPartition(worker.make_task(self._options, (), 0)) for _ in range(int(self._options["tasks"]))
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Make the objects that a worker keeps; yield nothing."""
        return worker.preload(partition.value)


class FilterStreamReader(DataSourceStreamReader):
    """Spark's questions, passed on to `Planner` and `worker`."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._made: Planner | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the Kafka clients behind: the reader is pickled for the workers."""
        return {"_options": self._options, "_made": None}

    @property
    def _planner(self) -> Planner:
        if self._made is None:
            state = EngineState(Path(self._options["state"]))
            deadline = round(1000 * float(self._options["deadline"]))
            tasks = int(self._options["tasks"])
            self._made = Planner(self._options["bootstrap"], state, deadline, tasks)
        return self._made

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the most records of a batch."""
        return ReadMaxRows(int(self._options["batch"]))

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the same at every call; where each partition begins is kept in the state."""
        return to_offset({}, 0)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return the end of the next batch."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return self._planner.latest(start, most)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the tasks of a batch, the same each time it is run."""
        work, active = self._planner.work(start, end)
        parts = share_out(work, int(self._options["tasks"]))
        return [InputPartition(worker.make_task(self._options, part, version(end), active)) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read and judge; runs in a worker."""
        return worker.run(partition.value)
