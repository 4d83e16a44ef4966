"""What a channel carries, as its relay writes it into Kafka and receivers read it there.

The topic ``multicast.<topic>`` is compacted, and readable by those who may read ``<topic>``: so the
keys that sign a channel are in the hands of those alone who may have what it carries.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property

from nightwire.core.datagrams.datagram import (
    Datagram,
    RefusedDatagramError,
    Secret,
    channel_number,
    check,
    decode,
)
from nightwire.core.kafka import Writer, read_to_end
from nightwire.schemas import DecodeError, records
from nightwire.schemas.topics import multicast


@dataclass(frozen=True)
class Channel:
    """A topic on a multicast group.

    Attributes:
        topic: Whose records it carries.
        group: ``ADDRESS:PORT``.
        condition: SQL that chooses among them; empty for all.
        survey: Whose alerts they are, by which the condition is read; empty for any.
        full: Whether alerts are sent whole, and not in their lite form.
        keys: Those that sign, the newest first; none where Kafka asks for no passwords.
        rotated: When the newest was made. [ms since 1970, UTC]
    """

    topic: str
    group: str
    condition: str = ""
    survey: str = ""
    full: bool = False
    keys: tuple[bytes, ...] = field(default=(), repr=False)
    rotated: int = 0

    @cached_property
    def number(self) -> int:
        """The hash by which datagrams name it."""
        return channel_number(self.topic, self.group, self.condition)

    @cached_property
    def secret(self) -> Secret | None:
        """The key that signs now; None where nothing is signed."""
        return Secret.of(self.keys[0]) if self.keys else None

    @cached_property
    def secrets(self) -> Mapping[int, bytes]:
        """The keys by number."""
        return {one.number: one.key for one in map(Secret.of, self.keys)}


def believed(raw: bytes, channels: Mapping[int, Channel]) -> tuple[Datagram, Channel]:
    """Return the datagram in *raw*, and its channel.

    Args:
        raw: What was received.
        channels: Those that are known, by number.

    Raises:
        RefusedDatagramError: It is not to be believed.
    """
    one = decode(raw)
    if (channel := channels.get(one.channel)) is None:
        raise RefusedDatagramError("foreign")
    if (wrong := check(raw, one, channel.secrets)) is not None:
        raise RefusedDatagramError(wrong)
    return one, channel


def announce(writer: Writer, channel: Channel) -> None:
    """Write *channel* into Kafka, and wait until it is there.

    Raises:
        DeliveryError: Kafka did not take it.
    """
    value = {**asdict(channel), "keys": list(channel.keys)}
    writer.write(multicast(channel.topic), records.CHANNEL.encode(value), key=channel.group.encode())
    writer.flush()


def read_channels(bootstrap: str, topic: str, *, patience: float = 10.0) -> dict[str, Channel]:
    """Return the channels of *topic*, by group; none where no relay ever was.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    found: dict[str, Channel] = {}
    for message in read_to_end(bootstrap, [multicast(topic)], patience=patience):
        name, value = (message.key() or b"").decode(errors="replace"), message.value()
        try:
            known = None if value is None else records.CHANNEL.decode(value)
        except DecodeError:
            continue
        found.pop(name, None)
        if known is not None and known["topic"] == topic:
            found[name] = Channel(**{**known, "keys": tuple(known["keys"])})
    return found
