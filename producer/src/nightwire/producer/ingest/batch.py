"""Making a batch of what was read, as far as schemas allow.  No Kafka here."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from nightwire.producer.ingest.items import Item
from nightwire.producer.ingest.schemas import SchemaPatience
from nightwire.producer.ingest.transform import Record, Transformer, of, schema_of
from nightwire.schemas import SchemaError

Event = Item | Record
"""What reading gives: a record, or what is known of offsets that have none."""


@dataclass
class Batcher:
    """Turns what was read into items, in order; stops at a record that has to wait for its schema.

    Args:
        mirror: Makes items of records.
        patience: Decides how long they wait.
        now: Gives monotonic time. [s]
    """

    mirror: Transformer
    patience: SchemaPatience
    now: Callable[[], float]
    pending: deque[Event] = field(default_factory=deque)
    waits_for: str | None = None

    def take(self) -> list[Item]:
        """Return what is ready, and leave the rest in *pending*; *waits_for* says why there is a rest."""
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
            item = self.mirror.item(record)
        except SchemaError as error:
            if self.patience.is_out(error, schema, self.now()):
                return of(record).buried(str(error))
            self.waits_for = str(error)
            return None
        self.patience.found(schema)
        return item
