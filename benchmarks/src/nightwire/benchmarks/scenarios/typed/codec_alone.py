"""The codec alone, in one process and without Kafka, beside a copy of the same bytes."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from timeit import Timer

from nightwire.benchmarks import Experiment, Figures, Kind
from nightwire.benchmarks.scenarios.typed.plan import Plan, rate_name
from nightwire.benchmarks.scenarios.typed.worker import FIELDS, SCHEMA, body_size, records_of
from nightwire.schemas import Codec

WAYS = ("encode", "decode", "to_columns")
COPY = "memcpy"
BATCH = 256
"""Records that become one batch of columns, at most, as a consumer takes them."""
BATCH_BYTES = 1 << 20
"""The same, by size: what one fetch brings of a partition."""


class CodecAlone(Experiment):
    """Encode, decode, and make columns of growing records; the baseline copies the bytes."""

    name = "alone"

    def __init__(self, plan: Plan) -> None:
        self._plan, self._codec = plan, Codec(SCHEMA)

    def prepare(self) -> None:
        """See that records come back as they were, and warm all of it up.

        Raises:
            AssertionError: One does not.
        """
        for size in self._plan.sizes:
            for one in records_of(size):
                if self._codec.decode(self._codec.encode(one)) != one:
                    raise AssertionError(f"a record of {size} bytes does not come back as it was")

    def run_once(self, kind: Kind) -> Figures:
        """Measure all sizes."""
        figures: Figures = {}
        for size in self._plan.sizes:
            works = self._works(size) if kind is Kind.SUBJECT else {COPY: copying(size, self._codec)}
            for way, work in works.items():
                rate = megabytes_per_second(work, body_size(size))
                named = [way] if kind is Kind.SUBJECT else WAYS
                figures |= {rate_name(one, size): rate for one in named}
        return figures

    def _works(self, size: int) -> Mapping[str, tuple[Callable[[], object], int]]:
        """Return what is timed, and how many records it takes at once."""
        records = records_of(size)
        bodies = [self._codec.encode(one) for one in records]
        batch = list(islice(cycle(bodies), max(1, min(BATCH, BATCH_BYTES // size))))
        return {
            "encode": (lambda: [self._codec.encode(one) for one in records], len(records)),
            "decode": (lambda: [self._codec.decode(body) for body in bodies], len(bodies)),
            "to_columns": (lambda: self._codec.columns(batch, FIELDS), len(batch)),
        }


def copying(size: int, codec: Codec) -> tuple[Callable[[], object], int]:
    """Return what copies the bodies of the same records, and how many they are."""
    bodies: Sequence[bytearray] = [bytearray(codec.encode(one)) for one in records_of(size)]
    return lambda: [bytes(body) for body in bodies], len(bodies)


def megabytes_per_second(work: tuple[Callable[[], object], int], size: int) -> float:
    """Return the bandwidth of *work*, which takes bodies of *size* [byte] at once. [MB/s]"""
    turns, seconds = Timer(work[0]).autorange()
    return turns * work[1] * size / 1e6 / seconds
