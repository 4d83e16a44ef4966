"""Alerts into Avro object containers, their bodies unchanged."""

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from nightwire.consumers.alert import ReceivedAlert
from nightwire.schemas import MendableError
from nightwire.schemas.wire import SYNC_SIZE, container_block, container_head


class MixedSchemasError(MendableError):
    """An alert has another schema than those before in the same stream, which can hold one only."""


class ContainerWriter:
    """Write Avro bodies of one schema into one container, each as a block of its own.

    Args:
        file: Where to; flushed after every alert.
        schema: The writer's schema.
        sync: Sixteen bytes between blocks.
    """

    def __init__(self, file: BinaryIO, schema: Mapping[str, Any], *, sync: bytes | None = None) -> None:
        self._file = file
        self._sync = sync or os.urandom(SYNC_SIZE)
        file.write(container_head(json.dumps(schema).encode(), self._sync))
        file.flush()

    def write(self, body: bytes) -> None:
        """Add one alert."""
        self._file.write(container_block(body, self._sync))
        self._file.flush()


class AlertContainers:
    """Write alerts into a container per schema.

    The first schema goes to the file that was named, each further one to a file beside it:
    ``night.avro``, ``night-2.avro``.  Files that are there are replaced.

    Args:
        path: The file; None for *stream* alone.
        stream: Where to without a *path*.
    """

    def __init__(self, path: Path | None, stream: BinaryIO | None = None) -> None:
        self._path, self._stream = path, stream
        self._writers: dict[int | str, ContainerWriter] = {}
        self._files: list[BinaryIO] = []
        self.paths: list[Path] = []

    def write(self, alert: ReceivedAlert) -> None:
        """Add *alert*, its Avro body unchanged.

        Raises:
            MixedSchemasError: It has another schema than those before, and there is no path.
        """
        key = alert.schema_id or json.dumps(alert.schema, sort_keys=True)
        if key not in self._writers:
            self._writers[key] = ContainerWriter(self._next_file(alert), alert.schema)
        self._writers[key].write(alert.body)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()

    def _next_file(self, alert: ReceivedAlert) -> BinaryIO:
        number = len(self._writers) + 1
        if self._path is None:
            if number > 1 or self._stream is None:
                raise MixedSchemasError(
                    f"{alert.place} has another schema ({alert.schema.get('name', '?')}) than those before; "
                    "with --out FILE each schema gets a file of its own"
                )
            return self._stream
        path = self._path if number == 1 else self._path.with_stem(f"{self._path.stem}-{number}")
        file: io.BufferedWriter = path.open("wb")
        self._files.append(file)
        self.paths.append(path)
        return file
