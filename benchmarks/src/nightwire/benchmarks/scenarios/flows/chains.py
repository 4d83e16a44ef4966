"""What a stone costs: events a second through chains of stones in one process, without Kafka."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Message

from nightwire.benchmarks import Context, Experiment, Figures, Kind, RunError
from nightwire.benchmarks.environment.alert_pool import make_pool, ready_messages
from nightwire.filters.language import Condition
from nightwire.flows.engine import Plan, compile_part
from nightwire.flows.model import check, parse
from nightwire.schemas import AlertDecoder, SchemaRegistry, sim_alert_schema

LENGTHS: Mapping[str, Sequence[int]] = {"quick": (1, 4, 16), "full": (1, 2, 4, 8, 16, 32)}
"""Stones in a chain, by profile."""
BATCH = 500
"""Events of a transaction. [event]"""
TOPIC = "alerts.sim"
KINDS = {"split": 'kind = "split"', "filter": 'kind = "filter"\nwhere = "snr > -{number}"'}
"""Stones by kind; the filters let all pass, and no two have one text."""


def chain(kind: str, length: int) -> str:
    """Return a flow of so many stones of a *kind*, one after the other, that ends in a topic."""
    text = f'name = "chain"\n[sources.s0]\ntopic = "{TOPIC}"\n'
    for number in range(1, length + 1):
        stone = KINDS[kind].format(number=1000 + number)
        text += f'[stones.s{number}]\nfrom = "s{number - 1}"\n{stone}\n'
    return f'{text}[stones.out]\nkind = "topic"\nfrom = "s{length}"\ntopic = "broker.bench.chain"\n'


class Chains(Experiment):
    """Batches of alerts through chains of one kind of stone.

    Args:
        context: Says how many.
        kind: Which stones.
    """

    def __init__(self, context: Context, kind: str) -> None:
        self.name, self._kind, self._context = f"chains-{kind}", kind, context
        self._lengths = LENGTHS[context.size.profile]
        self.at_most = {} if kind == "filter" else {Kind.BASELINE: 0}

    def prepare(self) -> None:
        """Compile the chains, make the alerts, and run each once."""
        registry = SchemaRegistry(None)
        self._decoder = AlertDecoder(registry)
        self._plans = {length: _compiled(chain(self._kind, length), registry) for length in self._lengths}
        ready = ready_messages(make_pool(BATCH))
        self._batch = [
            Message(topic=TOPIC, partition=0, offset=at, key=one.key, value=one.value)
            for at, one in enumerate((ready * BATCH)[:BATCH])
        ]
        self.run_once(Kind.SUBJECT)

    def run_once(self, kind: Kind) -> Figures:
        """Return events a second, by length; the baseline does the same without a flow."""
        rounds = max(1, self._context.size.alerts // BATCH)
        found = {}
        for length, plan in self._plans.items():
            begin = time.perf_counter()
            for _ in range(rounds):
                passed = len(plan.run(self._batch).outputs) if kind is Kind.SUBJECT else self._by_hand(length)
                if passed != BATCH:
                    raise RunError(f"{passed} of {BATCH} events came through")
            found[f"{self._kind}_{length}_per_s"] = rounds * BATCH / (time.perf_counter() - begin)
        return found

    def _by_hand(self, length: int) -> int:
        """Judge the conditions of a chain one after the other; return how many events met all."""
        values = [one.value() or b"" for one in self._batch]
        for number in range(1, length + 1):
            judged = Condition(f"snr > -{1000 + number}", "sim").judge(values, self._decoder)
            values = [values[at] for at in sorted(judged.passed)]
        return len(values)


def _compiled(text: str, registry: SchemaRegistry) -> Plan:
    flow = parse(text)
    types = check(flow, [TOPIC], lambda _survey: [sim_alert_schema()])
    return compile_part(flow, 1, "", types=types, topics=[TOPIC], registry=registry)
