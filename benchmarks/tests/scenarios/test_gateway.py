"""The scenario `gateway`: its parts, and a small exchange through a real gateway."""

from pathlib import Path

import pytest

from nightwire.benchmarks.environment import vtp_brokers
from nightwire.benchmarks.environment.vtp_brokers import VtpBrokers, check_comet
from nightwire.benchmarks.model.sample import Kind
from nightwire.benchmarks.model.scenario import Context, RunError, Size
from nightwire.benchmarks.scenarios.gateway.experiments import EventStream, Herd, Latency, Rate, stages
from nightwire.benchmarks.scenarios.gateway.scenario import HEADLINE, GatewayScenario, full, quick
from nightwire.benchmarks.scenarios.gateway.traced import read_trace
from nightwire.benchmarks.workers.vtp.exchange import ExchangeResult


def test_what_takes_time_in_the_gateway_is_told_from_what_kafka_takes(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    at = {"in": 1.0, "produced": 1.25, "acknowledged": 3.25, "fetched": 4.25}
    lines = [f"{what}\tivo://a/b#run-0\t{time}" for what, time in at.items()]
    trace.write_text("\n".join([*lines, "in\tivo://a/b#other-0\t9.0"]) + "\n")
    result = ExchangeResult({0: 0.5}, {0: 4.5}, {0: 5.5}, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, "run")
    assert stages(read_trace(trace, "run"), result) == {
        "in_to_produced_ms": 250.0,
        "produced_to_acknowledged_ms": 2000.0,
        "acknowledged_to_out_ms": 1250.0,
        "own_ms": 500.0 + 250.0 + 750.0,
    }


def test_figures_have_names_of_their_own_and_cover_both_profiles() -> None:
    names = [figure.name for figure in GatewayScenario.figures]
    assert len(names) == len(set(names))
    for plan in (quick(), full(5)):
        assert {f"{stream.name}_per_second" for stream in plan.streams} < set(names)
        assert {f"latency_s{many}_own_ms" for many in plan.subscribers} < set(names)
        assert HEADLINE in [stream.name for stream in plan.streams]


def test_a_slow_database_of_comets_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vtp_brokers, "_KIND", "print('dbm.dumb')")
    with pytest.raises(RunError, match="dumb, which is slow by itself: apt-get install python3-gdbm"):
        check_comet()


@pytest.mark.proof
@pytest.mark.kafka
def test_a_small_exchange_through_a_gateway_at_hand_and_far_away(kafka: str, tmp_path: Path) -> None:
    brokers = VtpBrokers(Context(tmp_path, Size(1, 1, 1.0), kafka))
    try:
        at_hand = Rate(brokers, EventStream("near", 60, 4)).run_once(Kind.SUBJECT)
        assert (at_hand["near_per_second"] > 0, at_hand["near_lost"]) == (True, 0.0)
        far = EventStream("far", 200, 1, window=50, real=False, round_trip=0.05, alone=True)
        assert Rate(brokers, far).run_once(Kind.SUBJECT)["far_round_trips"] > 1 / 50
        assert Rate(brokers, far).at_most[Kind.BASELINE] == 0
        found = Latency(brokers, 3, 10, 0.01).run_once(Kind.SUBJECT)
        assert 0 < found["latency_s3_own_ms"] <= found["latency_s3_mean_ms"]
        assert Herd(brokers, 50, 30.0).run_once(Kind.SUBJECT)["herd_served"] == 50
    finally:
        brokers.close()
