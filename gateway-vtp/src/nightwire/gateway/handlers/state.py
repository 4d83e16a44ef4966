"""Up to where handlers have acted, in a file that outlives the process."""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from nightwire.core.kafka import TopicPartition
from nightwire.gateway.eventlog.event import Positions

log = logging.getLogger(__name__)


class HandlerState:
    """The positions of all handlers in one file.

    Args:
        path: The file; made where it is missing.
        identity: Which log the positions are of; those of another one are not believed.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self._path, self._identity = path, identity

    def read(self) -> dict[str, Positions]:
        """Return the next offset to act on, per handler, topic and partition."""
        try:
            stored = json.loads(self._path.read_bytes())
            if stored["log"] != self._identity:
                log.warning("%s is of another log; handlers begin with what comes next", self._path)
                return {}
            return {name: _positions(rows) for name, rows in stored["handlers"].items()}
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.error(  # noqa: TRY400  (the message says it all)
                "%s cannot be read (%s); handlers begin with what comes next", self._path, error
            )
            return {}

    def write(self, handlers: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        """Replace the file; a crash leaves the old or the new.  Blocks until it is on disk."""
        rows = {
            name: [[*topic_partition, offset] for topic_partition, offset in one.items()]
            for name, one in handlers.items()
        }
        fresh = self._path.with_suffix(".new")
        with fresh.open("w") as file:
            json.dump({"log": self._identity, "handlers": rows}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)


def _positions(rows: list[tuple[str, int, int]]) -> Positions:
    return {(str(topic), int(partition)): int(offset) for topic, partition, offset in rows}
