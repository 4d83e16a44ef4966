"""A batch in memory that all children map and nobody can change: one sealed file without a name."""

import fcntl
import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa

from nightwire.filters.sandbox._contract import Work
from nightwire.filters.sandbox._rows import Section

SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
ALIGNMENT = 64
"""Of each part, as Arrow likes it. [byte]"""


@dataclass(frozen=True)
class SharedBatch:
    """A sealed batch.  As a context, it is given back at its end; children's mappings of it stay.

    Attributes:
        descriptor: Of the file.
        described: What a child has to know of it: the arguments of `Rows`.
    """

    descriptor: int
    described: dict[str, Any]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)


def share(work: Work) -> SharedBatch:
    """Return *work* as a sealed batch.

    Raises:
        OSError: There is no memory for it.
    """
    descriptor = os.memfd_create("batch", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            columns = None if work.columns is None else _write_columns(file, work)
            values = None if work.values is None else _write_values(file, work.values, work.schemas)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
        size = os.fstat(descriptor).st_size
    except BaseException:
        os.close(descriptor)
        raise
    described = {"size": size, "survey_name": work.survey, "count": work.rows}
    return SharedBatch(descriptor, {**described, "columns": columns, "values": values})


def _write_columns(file: IO[bytes], work: Work) -> Section:
    with pa.ipc.new_stream(file, work.columns.schema) as stream:
        stream.write_batch(work.columns)
    return 0, file.tell()


def _write_values(
    file: IO[bytes], values: Sequence[bytes], schemas: Mapping[int, Mapping[str, Any]]
) -> tuple[Section, Section, Section]:
    ends = np.fromiter(itertools.accumulate(map(len, values), initial=0), np.int64)
    known = json.dumps({key: dict(schema) for key, schema in schemas.items()}).encode()
    return _write(file, [ends.tobytes()]), _write(file, values), _write(file, [known])


def _write(file: IO[bytes], parts: Iterable[bytes]) -> Section:
    file.write(bytes(-file.tell() % ALIGNMENT))
    begin = file.tell()
    file.writelines(parts)
    return begin, file.tell() - begin
