"""Copies of alerts, gathered so that those for one topic go out together.

A request to Kafka carries the batch of one topic, and five are on their way at once: where each batch is a
single alert, a thousand owners wait for a thousand answers, whatever the bytes.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from nightwire.core.kafka import Writer

GATHERED = 128 << 20
"""Alerts are held until they are so large together; their copies share one value. [byte]"""


@dataclass
class Copies:
    """Gathers copies; within a topic they keep their order.

    Args:
        writer: Takes them.
        gathered: How much is held. [byte]
    """

    writer: Writer
    gathered: int = GATHERED
    _held: int = 0
    _of: dict[str, list[tuple[bytes | None, dict[str, Any]]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, topic: str, value: bytes | None, **said: Any) -> None:
        """Hold a copy for *topic*; *said* is what `Writer.write` is told beside it."""
        self._of[topic].append((value, said))

    def hold(self, size: int) -> None:
        """Count an alert of *size* [byte] all whose copies were added.

        Raises:
            DeliveryError: It was time to send, and Kafka did not take something.
        """
        self._held += size
        if self._held >= self.gathered:
            self.send()

    def send(self) -> None:
        """Hand all that is held to the writer, topic by topic.

        Raises:
            DeliveryError: Kafka did not take something.
        """
        for topic, some in self._of.items():
            for value, said in some:
                self.writer.write(topic, value, **said)
        self._of.clear()
        self._held = 0
