"""Alerts as a Spark table or stream: ``spark.readStream.format("nightwire")``.  No connector jar.

    register(spark)
    alerts = spark.readStream.format("nightwire").option("survey", "lsst").load()

Spark calls the classes of this module; `alert_tasks` asks Kafka and the schema registry for them.
Records are read and decoded in Spark's Python workers; only the fields that are asked for enter
Spark.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from nightwire.core.kafka import TopicPartition
from nightwire.core.runtime import NoStackError, find_endpoints
from nightwire.filters.model.offsets import (
    Offset,
    OffsetRange,
    advance,
    positions,
    ranges,
    share_out,
    to_offset,
)
from nightwire.filters.spark.alert_tasks import AlertTask, newest_schema, positions_at, run_task
from nightwire.filters.spark.options import AlertOptions, WantedColumns, parse_options

FORMAT = "nightwire"
IDLE = 0.2
"""Pause when there is nothing to read; Spark would ask again at once. [s]"""


def register(spark: SparkSession) -> None:
    """Make the format ``nightwire`` known to a session.

    Where Kafka and the schema registry are, if no option says so, is found out here and now:
    Spark's own processes may have another environment and folder.
    """

    class Here(AlertSource):
        addresses = _addresses()

    spark.dataSource.register(Here)


def _addresses() -> dict[str, str]:
    try:
        ends = find_endpoints()
    except NoStackError:
        return {}
    found = {"bootstrap": ends.kafka, "registry": ends.schema_registry}
    return {name: address for name, address in found.items() if address}


class AlertSource(DataSource):
    """A survey's alerts as columns, a row per alert; points in fields' names become underscores.

    Options: survey (or topic), fields (canonical names and dotted paths, with commas between),
        bootstrap,
    registry, starting (earliest, latest, or a time), batch (records), tasks, mode (FAILFAST or
    DROPMALFORMED).
    """

    addresses: Mapping[str, str] = {}

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._avro: Mapping[str, Any] | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name under which Spark knows it."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns.

        Raises:
            ValueError: An option is unknown or faulty.
            SchemaError: The newest alert has no such field; names those there are.
        """
        chosen = self._options("latest")
        return from_arrow_schema(WantedColumns(chosen.fields, chosen.survey, self._schema(chosen)).arrow)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream, from the latest alert unless an option says otherwise."""
        chosen = self._options("latest")
        return AlertStreamReader(chosen, self._schema(chosen))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of present alerts, from the earliest if no option says otherwise."""
        chosen = self._options("earliest")
        return AlertTableReader(chosen, self._schema(chosen))

    def _options(self, starting: str) -> AlertOptions:
        return parse_options({**self.addresses, **self.options}, starting)

    def _schema(self, chosen: AlertOptions) -> Mapping[str, Any]:
        """Return the schema as which all alerts are read: found once, and pickled along."""
        if self._avro is None:
            self._avro = newest_schema(chosen)
        return self._avro


class AlertTableReader(DataSourceReader):
    """Alerts that are there now.

    Args:
        chosen: The options.
        schema: As which all alerts are read.
    """

    def __init__(self, chosen: AlertOptions, schema: Mapping[str, Any]) -> None:
        self._chosen, self._schema = chosen, schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks."""
        start, end = positions_at(self._chosen, self._chosen.starting), positions_at(self._chosen, "latest")
        return tasks(self._chosen, self._schema, ranges(start, end, {}))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read; runs in a worker."""
        return run_task(partition.value)


class AlertStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Alerts as they come; with the trigger ``availableNow``, those that are there.

    Args:
        chosen: The options.
        schema: As which all alerts are read.
    """

    def __init__(self, chosen: AlertOptions, schema: Mapping[str, Any]) -> None:
        self._chosen, self._schema = chosen, schema
        self._start: dict[TopicPartition, int] | None = None
        self._target: dict[TopicPartition, int] | None = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the most records of a batch."""
        return ReadMaxRows(self._chosen.batch)

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return where to start, the same at every call."""
        if self._start is None:
            self._start = positions_at(self._chosen, self._chosen.starting)
        return to_offset(self._start, 0)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note how far to read."""
        self._target = positions_at(self._chosen, "latest")

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return the next batch's end; *start* when nothing is new, or Kafka does not answer."""
        known = positions(start)
        try:
            ends = positions_at(self._chosen, "latest") if self._target is None else self._target
            fresh = [partition for partition in ends if partition not in known]
            known |= {
                partition: first for partition, first in self._beginnings(fresh).items() if partition in fresh
            }
        except (KafkaException, TimeoutError):
            ends = known
        reached = advance(known, ends, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        if reached == positions(start):
            time.sleep(IDLE)
            return start
        return to_offset(reached, 0)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the tasks of a batch, the same each time it is run."""
        begun, reached = positions(start), positions(end)
        fresh = [partition for partition in reached if partition not in begun]
        return tasks(self._chosen, self._schema, ranges(begun, reached, self._beginnings(fresh)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read; runs in a worker."""
        return run_task(partition.value)

    def _beginnings(self, fresh: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return positions_at(self._chosen, "earliest") if fresh else {}


def tasks(
    chosen: AlertOptions, schema: Mapping[str, Any], work: Sequence[OffsetRange]
) -> list[InputPartition]:
    """Return Spark's tasks for *work*; one that does nothing where there is nothing to do."""
    parts = share_out(work, chosen.tasks) or [()]
    return [InputPartition(AlertTask(chosen, schema, part)) for part in parts]
