"""Batches: records become items, in order, as far as their schemas are known.  Pure."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from nightwire.producer.ingest.items import Item
from nightwire.producer.ingest.schemas import SchemaPatience
from nightwire.producer.ingest.transform import Record, Transformer, item_of, schema_of
from nightwire.schemas import SchemaError

Event = Item | Record
"""What reading gives: a record, or the item of offsets that have no record."""


@dataclass
class Batcher:
    """Turns records into items, in order; stops at a record that has to wait for its schema.

    Args:
        transformer: Makes items of records.
        patience: Decides how long a record waits for its schema.
        now: Gives monotonic time. [s]
    """

    transformer: Transformer
    patience: SchemaPatience
    now: Callable[[], float]
    pending: deque[Event] = field(default_factory=deque)
    waits_for: str | None = None

    def take(self) -> list[Item]:
        """Return the items that are ready; *waits_for* says why others are still *pending*."""
        self.waits_for = None
        ready: list[Item] = []
        while self.pending:
            event = self.pending[0]
            item = event if isinstance(event, Item) else self._item(event)
            if item is None:
                break
            ready.append(item)
            self.pending.popleft()
        return ready

    def _item(self, record: Record) -> Item | None:
        schema = schema_of(record)
        try:
            item = self.transformer.item(record)
        except SchemaError as error:
            if self.patience.is_out(error, schema, self.now()):
                return item_of(record).as_dead_letter(str(error))
            self.waits_for = str(error)
            return None
        self.patience.found(schema)
        return item
