"""The quantities of a transfer, by the name that figures end in.  Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nightwire.benchmarks import Better
from nightwire.benchmarks.workers.alerts.transfer import TransferResult


@dataclass(frozen=True)
class Quantity:
    """A quantity of a transfer.

    Attributes:
        unit: As in `Figure`.
        words: What it is, for people.
        short: The same, along an axis.
        of: Its value; None where it is not known.
        better: Which way it improves.
        compared: Whether the baseline's is worth comparing with.
        wide: Whether it spans decades, and is drawn so where its axis is.
    """

    unit: str
    words: str
    short: str
    of: Callable[[TransferResult], float | None]
    better: Better = Better.LOWER
    compared: bool = True
    wide: bool = True


def megabytes(size: int | None) -> float | None:
    """Return *size* [byte] in MB; None for None."""
    return None if size is None else size / 1e6


def network_in(result: TransferResult) -> float | None:
    """Return the mean rate into Kafka [MB/s]: a batch is stored as it came."""
    return None if result.stored is None else result.stored / 1e6 / result.sending


def network_out(result: TransferResult) -> float | None:
    """Return the mean rate out of Kafka [MB/s]: batches go out as stored, to each that reads."""
    return None if result.stored is None else result.readers * result.stored / 1e6 / result.seconds


VISIT_SIZE = "visit_megabytes"
"""Of a sample, beside its quantities: the place in plots over the size of a visit."""
QUANTITIES: Mapping[str, Quantity] = {
    "send_seconds": Quantity("s", "serialised, sent and acknowledged", "time", lambda one: one.sending),
    "transit_seconds": Quantity(
        "s", "the last alert from librdkafka's queue to its consumer", "time", lambda one: one.transit
    ),
    "seconds": Quantity("s", "from the first dictionary to the last decode", "time", lambda one: one.seconds),
    "alerts_per_second": Quantity(
        "1/s",
        "alerts a second, end to end",
        "alerts a second",
        lambda one: one.alerts / one.seconds,
        Better.HIGHER,
    ),
    "consumer_cpu_ms": Quantity(
        "ms",
        "CPU time of one consumer for one alert",
        "CPU time",
        lambda one: 1e3 * one.reading_cpu / one.alerts,
    ),
    "stored_megabytes": Quantity("MB", "on Kafka's disk", "stored", lambda one: megabytes(one.stored)),
    "kafka_memory_megabytes": Quantity(
        "MB",
        "Kafka's resident memory",
        "memory",
        lambda one: megabytes(one.memory),
        compared=False,
        wide=False,
    ),
    "network_in_megabytes_per_second": Quantity(
        "MB/s", "mean rate into Kafka", "rate", network_in, Better.HIGHER, compared=False
    ),
    "network_out_megabytes_per_second": Quantity(
        "MB/s", "mean rate out of Kafka", "rate", network_out, Better.HIGHER, compared=False
    ),
}
