"""Other programs read the tables: Spark, polars, and Delta's own reader."""

from collections.abc import Iterator
from pathlib import Path

import polars
import pytest
from deltalake import DeltaTable

from nightwire.archive import Archive
from nightwire.filters.spark.session import session

SQL = "SELECT band, count(*) AS n, avg(diaSource.psfFlux) AS flux, max(ra) AS ra FROM sim GROUP BY band"


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[object]:
    one = session(tmp_path, master="local[1]")
    yield one
    one.stop()


@pytest.mark.spark
@pytest.mark.slow
def test_spark_answers_as_we_do(spark: object, archived: Archive) -> None:
    """By the files that the table's log names, without a jar of Delta's."""
    reader = spark.read.option("mergeSchema", True).option("basePath", f"{archived.store}/sim/alerts")  # type: ignore[attr-defined]
    frame = reader.parquet(*archived.files("sim"))
    frame.createOrReplaceTempView("sim")
    found = [row.asDict() for row in spark.sql(SQL).collect()]  # type: ignore[attr-defined]
    assert found == archived.query(SQL).to_pylist()
    assert {"night", "npix", "_healpix_29", "diaSource"} <= set(frame.columns)


def test_polars_and_deltas_own_reader_have_all_rows(archived: Archive) -> None:
    table = f"{archived.store}/sim/alerts"
    assert len(polars.read_parquet(archived.files("sim"), hive_partitioning=True)) == 298
    assert DeltaTable(table).to_pyarrow_table().num_rows == 298
