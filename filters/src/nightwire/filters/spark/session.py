"""The Spark session: small, quiet, and warm; on this machine, or on a cluster."""

import logging
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nightwire.core.runtime import java_classes, java_home
from nightwire.filters.spark.class_archive import spark_archive
from nightwire.filters.spark.filter_source import FORMAT, FilterSource
from nightwire.filters.spark.monitoring import SETTINGS

log = logging.getLogger("nightwire.filters")

JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+IgnoreUnrecognizedVMOptions"
"""Spark only plans here, the work is in Python: one collector thread and the quick compiler
suffice."""

ALONE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""Nobody from outside needs to reach a driver that has no executors but itself."""


def session(
    scratch: Path,
    *,
    master: str = "local[2,4]",
    memory: str = "768m",
    java: Sequence[str] | None = None,
    page: bool = False,
) -> SparkSession:
    """Return a session with our data source.

    Args:
        scratch: Folder for what Spark writes in passing.
        master: Where it runs; four attempts, for with one a dead worker ends the query.
        memory: Heap of each Java process.
        java: More options of the driver's Java; by default those that start it from its archive of
            classes.
        page: Whether it tells Prometheus about itself.
    """
    local = master.startswith("local")
    prepare(local=local)
    more = java_classes.options(spark_archive()) if java is None else java
    settings = {
        **(ALONE if local else {}),
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join([JVM, *more]),
        "spark.executor.memory": memory,
        "spark.executor.extraJavaOptions": JVM,
        "spark.python.daemon.module": "nightwire.filters.spark.daemon",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.python.authenticate.socketTimeout": "60s",  # 15 is too short on a very busy machine
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2500",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **(SETTINGS if page else {}),
    }
    builder = SparkSession.builder.master(master).appName("nightwire-filters")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(FilterSource)
    return spark


def prepare(*, local: bool) -> None:
    """Say in the environment which Java and which Python Spark takes; on a cluster its operator may
    say so.

    Args:
        local: Whether all of Spark runs in this machine's one process.
    """
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if local or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def warm_up(spark: SparkSession, options: dict[str, str]) -> None:
    """Run an empty batch, so that workers with all their imports are there for the first alert."""
    began = time.monotonic()
    spark.read.format(FORMAT).options(**options).load().toArrow()
    log.info("warm after %.1f s", time.monotonic() - began)


def start_query(spark: SparkSession, options: dict[str, str], checkpoint: Path, batch: Any) -> StreamingQuery:
    """Start the query that calls *batch* (data frame, batch id) while there are alerts."""
    alerts: DataFrame = spark.readStream.format(FORMAT).options(**options).load()
    writer = alerts.writeStream.foreachBatch(batch).queryName("filters")
    return writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds").start()
