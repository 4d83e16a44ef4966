"""Several processes join the files of one archive while it is written: each row stays once."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow.parquet import ParquetFile, ParquetWriter

from archive.tests.conftest import Known, packet, put
from nightwire.archive.storage import ALERTS, INDEX, PACKETS, Store, Table, data_files, packets_in
from nightwire.archive.writing import SurveyWriter

pytestmark = pytest.mark.slow

JOIN = """
import sys
from nightwire.archive.storage import ALERTS, INDEX, PACKETS, Store, StorageError, Table
while True:
    for layout in (PACKETS, INDEX, ALERTS):
        Table(Store(sys.argv[1]), "sim", layout).compact()
    print(flush=True)
"""
ROUNDS, BATCH = 8, 20


@contextmanager
def joining(store: Store) -> Iterator[subprocess.Popen[bytes]]:
    """Join files again and again in a process of its own, which is killed at the end."""
    child = subprocess.Popen([sys.executable, "-c", JOIN, store.url], stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        yield child
    finally:
        child.kill()
        child.wait(30)
        child.stdout.close()


def check_joined_once(store: Store) -> None:
    tables = SurveyWriter(store, "sim", Known())
    put(tables, *(packet(n) for n in range(BATCH)))
    with ExitStack() as exits:
        one, other = (exits.enter_context(joining(store)) for _ in range(2))
        for child in (one, other):
            assert child.stdout is not None
            child.stdout.readline()
        for turn in range(1, ROUNDS):
            put(tables, *(packet(n) for n in range(turn * BATCH, (turn + 1) * BATCH)))
            if turn == ROUNDS // 2:
                other.kill()
                exits.enter_context(joining(store))
        assert one.poll() is None
    wanted = [*range(ROUNDS * BATCH)]
    for layout, times in ((PACKETS, 1), (ALERTS, 1), (INDEX, 3)):
        found = Table(store, "sim", layout).refreshed()
        assert found is not None
        assert sorted(found.to_pyarrow_table(columns=["offset"])["offset"].to_pylist()) == sorted(
            wanted * times
        )
    left = Table(store, "sim", PACKETS)
    left.compact()
    assert len(left.refreshed().file_uris()) < ROUNDS


def test_whole_alerts_are_joined_group_by_group(tmp_path: Path) -> None:
    """Never is more than a few groups of them in memory."""
    tables, count = SurveyWriter(Store(tmp_path), "sim", Known()), 64
    for n in range(0, count, 4):  # each file has a group that is not full
        put(tables, *(packet(at, b"x" + os.urandom(200_000)) for at in range(n, n + 4)))
    before, most = pa.total_allocated_bytes(), list[int]()

    class Measured(ParquetWriter):
        def write_table(self, table: pa.Table, row_group_size: int | None = None) -> None:
            most.append(pa.total_allocated_bytes() - before)
            super().write_table(table, row_group_size)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(data_files, "ParquetWriter", Measured)
        assert tables.packets.compact() == count // 4 - 1
    assert max(most) < count * 200_000 / 3
    (uri,) = tables.packets.refreshed().file_uris()
    with ParquetFile(uri) as joined:
        assert {joined.metadata.row_group(n).num_rows for n in range(joined.num_row_groups)} <= {2, 3, 4}
        values = joined.schema_arrow.get_field_index("value")
        assert joined.metadata.row_group(0).column(values).statistics is None
    kept = [
        one for rows in tables.packets.read_range(0, 0, count, 16) for one in packets_in("alerts.sim", rows)
    ]
    assert [one.offset for one in kept] == [*range(count)]
    assert {len(one.value or b"") for one in kept} == {200_001}


def test_whole_alerts_are_added_group_by_group(tmp_path: Path) -> None:
    tables, count, default = SurveyWriter(Store(tmp_path), "sim", Known()), 64, pa.default_memory_pool()
    packets = [packet(n, b"x" + os.urandom(200_000), n % 2) for n in range(count)]
    pool = pa.proxy_memory_pool(default)
    pa.set_memory_pool(pool)
    try:
        put(tables, *packets)
    finally:
        pa.set_memory_pool(default)
    assert pool.max_memory() < count * 200_000 / 3
    for number in (0, 1):
        (rows,) = tables.packets.read_range(number, 0, count, count)
        assert [*packets_in("alerts.sim", rows)] == packets[number::2]
    (one, _) = told_by(tables.packets)
    assert (one["num_records"], one["min.offset"], one["max.offset"]) == (
        32,
        one["partition.partition"],
        62 + one["partition.partition"],
    )


def test_what_the_log_tells_of_a_joined_file_is_what_it_told_of_its_parts(tmp_path: Path) -> None:
    tables = SurveyWriter(Store(tmp_path), "sim", Known())
    for n in range(0, 40, 10):
        put(tables, *(packet(at) for at in range(n, n + 10)))
    for table in (tables.packets, tables.alerts, tables.index):
        told = [told_by(table)]
        table.compact()
        told.append(told_by(table))
        assert len(told[1]) < len(told[0]) or table is tables.packets
        assert bounds_of(told[0]) == bounds_of(told[1])


def test_the_list_of_files_is_read_once_while_nobody_else_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, read, other = SurveyWriter(Store(tmp_path), "sim", Known()), list[int](), list[int]()
    for n in range(12):
        put(tables, packet(n, partition=0), packet(n, partition=1), packet(n, partition=2))
    listed, compact = DeltaTable.get_add_actions, Table._compact

    def counted(table: DeltaTable, flatten: bool = False) -> Any:
        read.append(1)
        return listed(table, flatten)

    def overtaken(table: Table, found: DeltaTable, run: Any) -> None:
        compact(table, found, run)
        if len(other) == 1:
            DeltaTable(table.uri).delete("partition = 2")
        other.append(1)

    monkeypatch.setattr(DeltaTable, "get_add_actions", counted)
    assert (tables.packets.compact(), len(read)) == (33, 1)
    for n in range(12, 14):
        put(tables, packet(n, partition=0), packet(n, partition=1), packet(n, partition=2))
    read.clear()
    monkeypatch.setattr(Table, "_compact", overtaken)
    assert (tables.packets.compact() > 0, len(read), len(other)) == (True, 2, 2)
    assert {one.count("partition=2") for one in tables.packets.refreshed().file_uris()} == {0}


def told_by(table: Table) -> list[dict[str, Any]]:
    return pa.table(table.refreshed().get_add_actions(flatten=True)).to_pylist()


def bounds_of(files: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a log tells of all files together."""
    ways = {"min.": min, "max.": max, "num_records": sum, "null_count.": sum, "partition.": max}
    return {
        name: way(one[name] for one in files)
        for name in files[0]
        for begin, way in ways.items()
        if name.startswith(begin)
    }


def test_on_a_disk(tmp_path: Path) -> None:
    check_joined_once(Store(tmp_path))


@pytest.mark.s3
def test_in_a_bucket(bucket: Store) -> None:
    check_joined_once(bucket)
