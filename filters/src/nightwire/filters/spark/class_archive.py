"""The archive of Spark's classes: ``python -m nightwire.filters.spark.class_archive``, as `make
setup` does.

The engine's Java starts from it in two thirds of the time.  Without it everything works as well.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from nightwire.core.runtime import java_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@cache
def spark_archive() -> Path:
    """Return where the archive of Spark's classes is, or would be.

    Raises:
        NoJavaError: There is no Java.
    """
    return java_classes.archive("spark", _jars())


def _jars() -> Iterator[Path]:
    found = find_spec("pyspark")
    if found is not None and found.origin is not None:
        yield from (Path(found.origin).parent / "jars").glob("*.jar")


def record_classes() -> bool:
    """Run a batch and a stream as the engine does, and keep the classes that Java loads for it.

    Returns:
        Whether there is an archive now.
    """
    return java_classes.record(spark_archive(), _run)


def _run(options: Sequence[str]) -> None:
    from nightwire.filters.spark.session import session

    with TemporaryDirectory(prefix="nightwire-") as folder:
        spark = session(Path(folder), master="local[1]", java=options, page=True)
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - there is no other way to Java's process
        try:
            _rehearse(spark, Path(folder))
        finally:
            spark.stop()
            gateway.proc.stdin.close()
            gateway.proc.wait(120)


def _rehearse(spark: "SparkSession", folder: Path) -> None:
    """Load the classes of a query: Python workers, Arrow, micro-batches, a checkpoint."""
    spark.range(10).mapInArrow(lambda some: some, "id long").toArrow()
    rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = (
        rates.mapInArrow(lambda some: some, rates.schema)
        .writeStream.foreachBatch(lambda rows, _number: rows.toArrow())
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    while query.isActive and query.lastProgress is None:
        time.sleep(0.2)
    query.stop()


def main() -> int:
    """Record the archive where it is missing; all works without it, so return 0 anyway."""
    if find_spec("pyspark") is None or spark_archive().exists():
        return 0
    sys.stdout.write("recording the classes that Spark loads (once; half a minute)\n")
    sys.stdout.flush()
    # in a process of its own, for Spark and Java say much that only matters when it fails
    child = [sys.executable, "-c", f"from {__spec__.name} import record_classes; record_classes()"]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    if done.returncode or not spark_archive().exists():
        sys.stdout.write(f"that failed, and Spark will start a little later: {done.stderr[-500:]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
