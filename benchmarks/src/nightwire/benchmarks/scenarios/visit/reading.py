"""How fast a full topic is read to dictionaries and to columns, beside raw reading."""

import time
from contextlib import ExitStack

from nightwire.benchmarks.environment.alert_pool import ReadyMessage
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.model.sample import Figures, Kind
from nightwire.benchmarks.model.scenario import Context, Experiment
from nightwire.benchmarks.workers.alerts.feed import RawProducer, cycled
from nightwire.benchmarks.workers.client import reader_process
from nightwire.schemas import Codec, sim_alert_schema
from nightwire.schemas.wire import unframe


class Reading(Experiment):
    """A topic that holds a visit → dictionaries; against raw reading or decoding, the slower.

    And → tables of twenty columns by `AlertReader`, against raw reading.
    """

    name = "dicts"

    def __init__(self, context: Context, cluster: Cluster, ready: list[ReadyMessage]) -> None:
        self._context, self._cluster, self._ready = context, cluster, ready
        self._exits = ExitStack()
        self._topic = ""

    def prepare(self) -> None:
        """Fill a topic with one visit, and read it once each way."""
        self._topic = self._exits.enter_context(self._cluster.topic("dicts"))
        raw = RawProducer(self._cluster.bootstrap, self._topic)
        raw.send_all(cycled(self._ready, self._context.size.alerts))
        for kind in Kind:
            self.run_once(kind)

    def run_once(self, kind: Kind) -> Figures:
        """Read all of it into dictionaries; or read it, then decode as many bodies."""
        if kind is Kind.SUBJECT:
            return {
                "to_dicts_alerts_per_second": self._read("dicts"),
                "reader_tables_alerts_per_second": self._read("tables"),
            }
        raw, decoding = self._read("bytes"), self._decode()
        return {
            "to_dicts_alerts_per_second": min(raw, decoding),
            "reader_tables_alerts_per_second": raw,
            "raw_consume_alerts_per_second": raw,
            "decode_alone_alerts_per_second": decoding,
        }

    def tear_down(self) -> None:
        """Delete the topic."""
        self._exits.close()

    def _read(self, work: str) -> float:
        """Return alerts a second."""
        count, where = self._context.size.alerts, (self._context, self._cluster.bootstrap, [self._topic])
        with reader_process(*where, work, expect=count, whole=True) as reader:
            found = reader.findings()
        return count / float(found["last"] - found["began"])

    def _decode(self) -> float:
        codec = Codec(sim_alert_schema())
        bodies = [unframe(one.value)[1] for one in cycled(self._ready, self._context.size.alerts)]
        began = time.perf_counter()
        for body in bodies:
            codec.decode(body)
        return len(bodies) / (time.perf_counter() - began)
