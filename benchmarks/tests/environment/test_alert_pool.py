"""The pool of alerts, and the patches that make each new."""

from nightwire.benchmarks.environment.alert_pool import ReadyMessage, make_pool, patched, ready_messages
from nightwire.benchmarks.workers.alerts.feed import cycled
from nightwire.schemas import Codec, sim_alert_schema, survey


def test_patched_alerts_have_ids_times_and_positions_of_their_own_and_share_the_rest() -> None:
    pool = make_pool(4)
    alerts = list(patched(pool, 8, visit=77, first=3))
    sources = [alert["diaSource"] for alert in alerts]
    for field in ("diaSourceId", "midpointMjdTai", "ra"):
        assert len({source[field] for source in sources}) == 8
    assert {source["visit"] for source in sources} == {77}
    assert all(alert["diaSourceId"] == alert["diaSource"]["diaSourceId"] for alert in alerts)
    assert alerts[0]["cutoutScience"] is pool[3]["cutoutScience"]
    assert pool[3]["diaSource"]["visit"] != 77


def test_patched_alerts_fit_the_schema_and_keep_their_sizes() -> None:
    pool = make_pool(6)
    codec = Codec(sim_alert_schema())
    for alert, ready in zip(patched(pool, 6, visit=77), ready_messages(pool), strict=True):
        assert abs(len(codec.encode(alert)) + 5 - len(ready.value)) < 40
        assert survey("sim").key(alert) == ready.key


def test_ready_made_messages_are_taken_in_turn() -> None:
    messages = [ReadyMessage(b"", bytes([number])) for number in range(3)]
    assert [one.value[0] for one in cycled(messages, 5, 2)] == [2, 0, 1, 2, 0]
