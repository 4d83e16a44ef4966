"""A query per user, as other brokers do it: Spark's own Kafka source, once for each of them.

Each query reads every alert, decodes it whole, calls one Python function for it, and writes what
passed with Spark's own sink.  ``python -m nightwire.benchmarks.scenarios.filters.queries
'{"bootstrap": …}'`` prints a line when its queries run, and for each line that it reads the seconds
until all have judged what was there then.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nightwire.benchmarks.workers.worker import emit, first_order
from nightwire.core.runtime import java_home
from nightwire.core.stack import jar_folder
from nightwire.filters.language import compile_filter
from nightwire.schemas import Codec, sim_alert_schema, survey
from nightwire.schemas.wire import unframe

MEMORY = "4g"
"""Heap of Spark's Java process: its own source moves every byte through it."""
AT_ONCE = 500
"""Alerts that a Python worker gets at once: Spark's 10,000 are more than a gigabyte in each."""
COLUMNS = "key binary, value binary"


def jars() -> str:
    """Return the paths of Spark's Kafka connector, which is fetched once.

    Raises:
        JarError: It could not be fetched.
    """
    folder = jar_folder(lock=files("nightwire.benchmarks.scenarios.filters") / "spark-kafka.lock")
    return ",".join(str(path) for path in sorted(folder.glob("*.jar")))


def session(folder: Path) -> SparkSession:
    """Return a session with Spark's Kafka connector, as quiet as ours."""
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": jars(),
        "spark.driver.memory": MEMORY,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(folder / "spark"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(AT_ONCE),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    spark: SparkSession = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    return spark


@lru_cache
def _keep(source: str) -> Callable[[Any], Any]:
    return compile_filter(source, "keep")


@lru_cache
def _codec() -> Codec:
    return Codec(sim_alert_schema())


def judging(source: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what lets through those alerts that the function *source* passes."""

    def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep, codec, sim = _keep(source), _codec(), survey("sim")
        for batch in batches:
            bodies = (unframe(value.as_buffer())[1] for value in batch["value"])
            rows = [bool(keep(sim.view(codec.decode(body)))) for body in bodies]
            yield batch.filter(pa.array(rows, pa.bool_()))

    return passed


def start(
    spark: SparkSession, order: Mapping[str, str], sources: Sequence[str], folder: Path
) -> list[StreamingQuery]:
    """Start a query for each of *sources*, over what comes into the topic from now on."""
    return [_started(spark, order, source, folder / str(n)) for n, source in enumerate(sources)]


def _started(spark: SparkSession, order: Mapping[str, str], source: str, folder: Path) -> StreamingQuery:
    alerts = spark.readStream.format("kafka").option("kafka.bootstrap.servers", order["bootstrap"])
    alerts = alerts.option("subscribe", order["topic"]).option("startingOffsets", "latest")
    passed = alerts.load().select("key", "value").mapInArrow(judging(source), COLUMNS)
    out = passed.writeStream.format("kafka").option("kafka.bootstrap.servers", order["bootstrap"])
    out = out.option("topic", order["out"]).option("checkpointLocation", str(folder))
    return out.option("kafka.max.request.size", str(4 << 20)).start()


def run(order: dict[str, Any]) -> None:
    """Start a query for each function in ``sources``, ``topic`` → ``out``; time them."""
    sources = json.loads(Path(order["sources"]).read_text())
    with tempfile.TemporaryDirectory() as name:
        spark = session(Path(name))
        queries = start(spark, order, sources, Path(name))
        for query in queries:
            query.processAllAvailable()
        emit({"ready": True})
        for _line in sys.stdin:
            began = time.monotonic()
            for query in queries:
                query.processAllAvailable()
            emit({"seconds": time.monotonic() - began})
        spark.stop()


if __name__ == "__main__":
    # whose functions Spark's workers can import
    from nightwire.benchmarks.scenarios.filters.queries import run

    run(first_order())
