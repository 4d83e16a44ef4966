"""The progress of a topic's relays, by their committed offsets."""

from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.datagrams import Channel, read_channels
from nightwire.core.kafka import consumer, watermarks
from nightwire.multicast.channel_admin import channels_of
from nightwire.multicast.positions import METADATA, relay_group
from nightwire.multicast.serve import RelayError


@dataclass(frozen=True)
class Progress:
    """The progress of a channel in a partition.

    Attributes:
        group: ``ADDRESS:PORT``.
        partition: Its number.
        epoch: Of its last relay.
        sent: The last offset sent, by the last commit.
        behind: Records after the committed offset.
        full: Whether alerts are sent whole.
        signed: Whether datagrams are signed.
        condition: SQL that chooses among the records; empty for all.
    """

    group: str
    partition: int
    epoch: int
    sent: int
    behind: int
    full: bool
    signed: bool
    condition: str


def progress_of(bootstrap: str, topic: str) -> list[Progress]:
    """Return the progress of each channel of *topic* in each partition.

    Raises:
        RelayError: The topic was deleted.
        KafkaException: Kafka cannot be reached.
    """
    channels = read_channels(bootstrap, topic)
    mapped = {one.group for one in channels_of(bootstrap, topic)} if channels else set()
    return [
        row
        for name, channel in sorted(channels.items())
        for row in _rows(bootstrap, channel, topic if name in mapped else name)
    ]


def _rows(bootstrap: str, channel: Channel, carried: str) -> Iterator[Progress]:
    with consumer(bootstrap, group=relay_group(carried)) as client:
        known = client.list_topics(timeout=10).topics
        if channel.topic not in known:
            raise RelayError(f"{channel.topic} was sent to {channel.group}, and is no more")
        numbers = sorted(known[channel.topic].partitions)
        asked = [TopicPartitionOffset(channel.topic, number) for number in numbers]
        for at in client.committed(asked, timeout=10):
            saved = METADATA.fullmatch(at.metadata or "")
            high = watermarks(client, at.topic, at.partition).high
            epoch, sent = (int(saved[1]), int(saved[2])) if saved else (0, -1)
            behind = high - at.offset if at.offset >= 0 else 0
            about = channel.full, bool(channel.keys), channel.condition
            yield Progress(channel.group, at.partition, epoch, sent, behind, *about)
