"""Events for subscribers that fell behind: read from Kafka again, from where each of them is.

One consumer, in one thread, serves them in turn, a piece at a time, so that any number of slow peers
costs one peer's memory.
"""

import logging
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from nightwire.gateway._render import Renderer
from nightwire.gateway._ring import Event, Positions
from nightwire.schemas import DecodeError, RegistryAwayError, UnknownSchemaError

log = logging.getLogger(__name__)

MAX_EVENTS = 1_000
MAX_BYTES = 4 << 20  # [byte]
PATIENCE = 10.0
"""Longest wait for one piece; what came until then is returned. [s]"""


class Backlog:
    """Read pieces of the log.  `read` blocks: call it from one worker thread.

    Args:
        make_reader: Returns a consumer, used by this alone.
        make_renderer: Returns the renderer, made in the thread that reads.
    """

    def __init__(self, make_reader: Callable[[], Consumer], make_renderer: Callable[[], Renderer]) -> None:
        self._make_reader, self._make_renderer = make_reader, make_renderer
        self._tools: tuple[Consumer, Renderer] | None = None

    def read(self, positions: Positions, until: Positions) -> tuple[list[Event], Positions]:
        """Return the events from *positions* on, in Kafka's order, and the positions after them.

        Stops at *until*, or when a piece is full.  A record that cannot be read is passed over: the
        follower has dealt with it.
        """
        self._tools = self._tools or (self._make_reader(), self._make_renderer())
        reader = self._tools[0]
        reached = dict(positions)
        todo = [spot for spot, end in until.items() if positions.get(spot, 0) < end]
        reader.assign([TopicPartition(*spot, positions.get(spot, 0)) for spot in todo])
        events: list[Event] = []
        try:
            self._fill(events, reached, until, *self._tools)
        except RegistryAwayError as error:
            log.warning("waiting for the schema registry: %s", error)
        finally:
            reader.unassign()
        return events, reached

    def close(self) -> None:
        """Close the consumer."""
        if self._tools is not None:
            self._tools[0].close()

    def _fill(
        self,
        events: list[Event],
        reached: Positions,
        until: Positions,
        reader: Consumer,
        renderer: Renderer,
    ) -> None:
        size = 0
        deadline = time.monotonic() + PATIENCE
        while len(events) < MAX_EVENTS and size < MAX_BYTES and time.monotonic() < deadline:
            if all(reached.get(spot, 0) >= end for spot, end in until.items()):
                return
            message = reader.poll(0.1)
            event = None if message is None else _event(message, renderer, reached)
            if event is not None:
                events.append(event)
                size += len(event.document)


def _event(message: Message, renderer: Renderer, reached: Positions) -> Event | None:
    """Return the event in *message* if it is to be delivered, and note in *reached* that it was read."""
    error = message.error()
    if error is not None:
        if not error.retriable():
            raise KafkaException(error)
        return None
    spot, offset = (str(message.topic()), message.partition() or 0), message.offset() or 0
    if offset < reached.get(spot, 0):
        return None
    try:
        event = renderer.event(message)
    except RegistryAwayError:
        raise  # not passed over: it is the first of the next piece
    except (DecodeError, UnknownSchemaError):
        reached[spot] = offset + 1
        return None
    reached[spot] = offset + 1
    return event if event.deliverable else None
