"""The writer of one transaction: the first failure ends it, and says for what."""

from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from nightwire.core.kafka import DeliveryError, Headers, Writer

FOR_ITSELF = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD})
"""Kafka refuses one record for what it is; the others of its batch fail with it."""


class TransactionError(DeliveryError):
    """A record did not get into the transaction, which therefore has to be aborted.

    Attributes:
        for_itself: Whether a record was refused for what it is, so that others may be taken without it.
    """

    def __init__(self, topic: str, error: KafkaError) -> None:
        super().__init__(f"{topic}: {error.str()} ({error.name()})")
        self.for_itself = error.code() in FOR_ITSELF


class TransactionWriter(Writer):
    """Write the records of one transaction.

    Nothing is sent again by itself: in a transaction that lost a record nothing can be.

    Args:
        producer: Has begun a transaction.
        timeout: Longest wait for acknowledgements. [s]
    """

    def __init__(self, producer: Producer, timeout: float) -> None:
        super().__init__(producer, flush_timeout=timeout)
        self._client, self._timeout = producer, timeout
        self._failed: tuple[str, KafkaError] | None = None

    @property
    def failed(self) -> TransactionError | None:
        """The first record that the transaction lost."""
        return None if self._failed is None else TransactionError(*self._failed)

    def write(self, topic: str, value: bytes | None, **options: Any) -> None:
        """Queue one record; wait while librdkafka's queue is full.

        Args:
            topic: Where to.
            value: Its value.
            options: Its ``key`` and ``headers``, and ``on_delivered``, as `Writer.write` has them.

        Raises:
            TransactionError: This record, or one before it, is lost to the transaction.
        """
        then = options.get("on_delivered")
        headers: Headers = options.get("headers", ())

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                # Called with an exception on its way at times, so that nothing may be raised or made here.
                self._failed = self._failed or (topic, error)
            elif then is not None:
                then(message)

        while True:
            self._check()
            try:
                self._client.produce(
                    topic, value, options.get("key"), headers=list(headers), on_delivery=delivered
                )
                break
            except BufferError:  # librdkafka's queue is full: wait for acknowledgements
                self._client.poll(0.1)
            except KafkaException as error:
                raise TransactionError(topic, error.args[0]) from error
        self._client.poll(0)

    def flush(self) -> None:
        """Wait until every queued record is acknowledged.

        Raises:
            TransactionError: One is lost to the transaction.
            DeliveryError: The wait took too long.
        """
        waiting = self._client.flush(self._timeout)
        self._check()
        if waiting:
            raise DeliveryError(f"{waiting} records unacknowledged after {self._timeout:g} s")

    def _check(self) -> None:
        if (failed := self.failed) is not None:
            raise failed
