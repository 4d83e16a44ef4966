"""The scenario `codec`: its figures, and which engines it compares."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks.environment.machine import data_folder
from nightwire.benchmarks.model.sample import Sample
from nightwire.benchmarks.model.scenario import Context, Experiment, Figure, Needs, Outcome, Scenario, Size
from nightwire.benchmarks.scenarios.codec.alerts import find_alerts
from nightwire.benchmarks.scenarios.codec.experiments import CodecEngine, OtherVersion
from nightwire.schemas import engines

FASTAVRO = "fastavro, in the same process"
TITLES = {
    "encode": "dictionary to bytes",
    "decode": "bytes to dictionary",
    "columns": "bytes to twenty Arrow columns",
}


def figures() -> Iterator[Figure]:
    """Yield what is reported: each engine beside fastavro, then morphing beside plain decoding."""
    for engine in ("native", "python"):
        for what, title in TITLES.items():
            yield Figure(
                f"{engine}_{what}_us",
                "µs",
                f"{engine}: {title}, an alert",
                baseline=FASTAVRO,
                headline=True,
            )
    for engine in ("native", "python"):
        yield Figure(
            f"{engine}_morph_decode_us",
            "µs",
            f"{engine}: bytes to a dictionary of another version, an alert",
            baseline="the same engine, decoding as it was written",
            headline=True,
        )


class CodecScenario(Scenario):
    """Encoding and decoding alone, in one process."""

    name = "codec"
    title = "The codec, beside fastavro"
    measures = (
        "Alerts are encoded, decoded, and made into twenty columns, by each engine of ours and by fastavro "
        "in the same process, one core. Ours refuses values that do not fit, which fastavro writes. "
        "Before the clock starts, bytes and values are compared for every alert."
    )
    figures: Sequence[Figure] = tuple(figures())
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=256, pairs=5, rate=1.0, profile="quick"),
        "full": Size(alerts=2_048, pairs=9, rate=1.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes."""
        return Needs(disk=10**6, memory=2 * 10**9, seconds=10 + size.alerts * size.pairs * 0.015)

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return each engine beside fastavro, and morphing beside plain decoding."""
        context.say("gathering alerts")
        self._alerts, self._count = find_alerts(data_folder()), context.size.alerts
        there = engines()
        return [
            *(CodecEngine(name, self._alerts, self._count) for name in there),
            *(OtherVersion(name, self._alerts, self._count) for name in there),
        ]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Say what the alerts were."""
        sizes = sorted(len(body) for body in self._alerts.bodies)
        notes = [
            f"{self._alerts.what}, {sizes[0]:,} to {sizes[-1]:,} bytes (median {sizes[len(sizes) // 2]:,}), "
            f"taken in turn, {self._count:,} a run."
        ]
        if "native" not in engines():
            notes.append("The native codec is not built here: `make native` builds it.")
        return Outcome(notes=notes)
