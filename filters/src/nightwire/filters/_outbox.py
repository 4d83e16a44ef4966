"""Control records, written now and then by a client that is kept: a new one takes longer than the records."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from nightwire.core import kafka
from nightwire.core.kafka import Writer, ensure_topics
from nightwire.schemas.topics import settings


class Outbox:
    """Writes to Kafka, for one thread; after a failure with a new client.

    Args:
        bootstrap: Kafka's address.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producer: Producer | None = self._made()
        self._known: set[str] = set()

    @contextmanager
    def writer(self, *topics: str) -> Iterator[Writer]:
        """Yield a writer; on leaving, what it wrote is acknowledged.

        Args:
            topics: Those that are made where they are missing.

        Raises:
            DeliveryError: Kafka did not take something.
            KafkaException: Kafka does not answer.
        """
        try:
            self.ensure(*topics)
            self._producer = self._producer or self._made()
            writer = Writer(self._producer)
            yield writer
            writer.flush()
        except BaseException:
            self._producer = None
            self._known.clear()
            raise

    def _made(self) -> Producer:
        """Return a client; it takes half a second until it can write, so it is made before it is needed."""
        return kafka.producer(self._bootstrap, linger_ms=0)

    def ensure(self, *topics: str) -> None:
        """Make those of *topics* that are missing; they are looked for once.

        Raises:
            KafkaException: Kafka refused one, or does not answer.
        """
        if missing := [topic for topic in topics if topic not in self._known]:
            ensure_topics(self._bootstrap, [settings(topic) for topic in missing])
            self._known.update(missing)
