"""Reading and judging a range: over columns, alert by alert, in a sandbox.

All as plain Python would.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from filters.tests.helpers import matched
from filters.tests.helpers.accepted import accepted
from filters.tests.helpers.matched import POSITIONS, stocked
from nightwire.core.catalogues import Catalogue, CatalogueStore
from nightwire.core.kafka import Writer, producer, watermarks
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.decision.notices import bad_filters
from nightwire.filters.evaluation.in_process import judge_in_process
from nightwire.filters.evaluation.probing import Prober, instrumented
from nightwire.filters.evaluation.results import Verdict
from nightwire.filters.evaluation.worker import Task, _prober, run
from nightwire.filters.language import compile_filter, compile_python, compile_sql
from nightwire.filters.model import filter_set
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import JudgedBatch, judged_batch
from nightwire.filters.model.offsets import OffsetRange
from nightwire.filters.reading.alerts import AlertIdentities, Alerts
from nightwire.filters.reading.fetch import range_consumer
from nightwire.filters.reading.requirements import SurveyKnowledge, column_requirements
from nightwire.schemas import AlertDecoder, AlertTable, Codec, SchemaRegistry, sim_alert_schema, survey, wire

pytestmark = pytest.mark.slow

BRIGHT = "def keep(alert):\n    return alert.flux > 500"
FAULTY = "def keep(alert):\n    return 1 / (alert.id % 10) > 0.4"
RANKED = "def keep(alert):\n    return alert.flux if alert.flux > 900 else 0"
CLASSY = "class Cut:\n    least = 700\n\ndef keep(alert):\n    return alert.flux > Cut.least"
OWN = "def keep(alert):\n    return alert['diaSource']['diaSourceId'] % 2 == 1"
SOURCES = [BRIGHT, FAULTY, RANKED, CLASSY, OWN]


def live(number: int, source: str, **about: Any) -> LiveFilter:
    """Return a filter of an owner of its own."""
    return accepted(LiveFilter(f"owner{number}", "f", 1, "sim", source, "keep", **about))


def compiled(number: int, source: str) -> LiveFilter:
    """Return a filter with its program."""
    return live(number, source, program=compile_python(source, "keep").dumps())


@pytest.fixture
def alerts(encode: Callable[..., bytes]) -> list[bytes]:
    """Return a hundred alerts, and two records that are none."""
    return [*(encode(number, 10.0 * number) for number in range(1, 101)), b"\0\0\0", b"Obj\x01 is not one"]


@pytest.fixture
def judge(bootstrap: str, tmp_path: Path) -> Callable[..., JudgedBatch]:
    """Return what judges records by filters, as a worker does."""

    def judge(values: Sequence[bytes], filters: Sequence[LiveFilter], sandbox: str = "none") -> JudgedBatch:
        writer, consumer = Writer(producer(bootstrap)), range_consumer(bootstrap)
        writer.write("alerts.sim", b"", partition=0)  # makes the topic
        writer.flush()
        _, first = watermarks(consumer, "alerts.sim", 0)
        for number, value in enumerate(values):
            writer.write("alerts.sim", value, partition=0, timestamp_ms=1000 + number)
        writer.flush()
        consumer.close()
        version = EngineState(tmp_path).newest_decision() + 2 + first
        EngineState(tmp_path).keep_filters(version, filter_set.dump(filters))
        cut = first + len(values) // 2  # two ranges, as after a rebalance
        work = (
            OffsetRange("alerts.sim", 0, first, cut),
            OffsetRange("alerts.sim", 0, cut, first + len(values)),
        )
        catalogues = str(tmp_path / "catalogues")
        task = Task(
            bootstrap, "http://127.0.0.1:9", str(tmp_path), version, work, sandbox=sandbox,
            catalogues=catalogues,
        )  # fmt: skip
        return judged_batch(pa.Table.from_batches(list(run(task))))

    return judge


def passes(found: JudgedBatch, number: int) -> dict[str, float | None]:
    """Return the ids of the alerts that passed a filter, with their ranks."""
    mine = found.filter_index == number
    return {
        found.alerts[at].alert: None if math.isnan(rank) else rank
        for at, rank in zip(found.alert_index[mine], found.rank[mine].tolist(), strict=True)
    }


def tally(found: JudgedBatch, number: int) -> tuple[int, int, int]:
    """Return evaluated, passed and faulted of a filter."""
    rows = [(one, list(one.filters).index(number)) for one in found.counts]
    sums = [sum(getattr(one, name)[at] for one, at in rows) for name in ("evaluated", "passed", "faulted")]
    return sums[0], sums[1], sums[2]


def by_python(source: str, values: Sequence[bytes]) -> dict[str, float | None]:
    """Return what plain Python says."""
    codec, function = Codec(sim_alert_schema()), compile_filter(source, "keep")
    found: dict[str, float | None] = {}
    for value in values:
        alert = survey("sim").view(codec.decode(wire.unframe(value)[1]))
        try:
            said = function(alert)
        except ZeroDivisionError:
            continue
        if said:
            found[str(alert.id)] = None if isinstance(said, bool) else float(said)
    return found


@pytest.mark.parametrize("how", ["guessed", "narrow", "compiled"])
def test_a_filter_says_what_plain_python_says(
    how: str, judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    fields = ("flux", "id", "diaSource.diaSourceId")
    makers: dict[str, Callable[[int, str], LiveFilter]] = {
        "guessed": live,
        "narrow": lambda number, source: live(number, source, fields=fields),
        "compiled": lambda number, source: (
            live(number, source) if "class" in source else compiled(number, source)
        ),
    }
    found = judge(alerts, [makers[how](number, source) for number, source in enumerate(SOURCES)])
    for number, source in enumerate(SOURCES):
        assert passes(found, number) == by_python(source, alerts[:100]), source
    assert tally(found, 1) == (100, 20, 10)
    assert [(one.read, one.undecodable, one.passed_alerts) for one in found.counts] == [
        (51, 0, 31),
        (51, 2, 49),
    ]
    assert [dead.reason for dead in found.undecodable]
    fault = found.counts[0].faults[1]
    assert fault.alert == "10"
    assert "ZeroDivisionError: division by zero (line 2: return 1 / (alert.id % 10) > 0.4)" in fault.text


OVER_COLUMNS = {
    "table": "def keep(alerts):\n    return (alerts.flux > 500) & (alerts.id % 2 == 1)",
    "named": """
COLUMNS = ["flux", "diaSource.diaSourceId"]
def keep(flux, number):
    return (flux > 500) & (number % 2 == 1)
""",
}


@pytest.mark.parametrize("name", OVER_COLUMNS)
def test_a_function_of_columns_says_what_one_of_each_alert_does(
    name: str, judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    source = OVER_COLUMNS[name]
    found = judge(alerts, [live(0, source), live(1, CUTS), live(2, f"{source}\n1 / 0")], "weak")
    assert passes(found, 0) == passes(found, 1) == by_python(CUTS, alerts[:100])
    assert tally(found, 0) == (100, 25, 0)
    assert tally(found, 2) == (100, 0, 100)


def test_a_column_that_nobody_has_is_the_fault_of_its_filter_alone(
    judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    nope = "def keep(alerts):\n    return alerts['diaSource.nope'] > 1"
    found = judge(alerts, [live(0, nope), live(1, CUTS)], "weak")
    assert tally(found, 0) == (100, 0, 100)
    assert "nope" in found.counts[0].faults[0].text
    assert passes(found, 1) == by_python(CUTS, alerts[:100])


def test_without_a_sandbox_a_function_of_columns_is_not_judged(
    judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    found = judge(alerts, [live(0, OVER_COLUMNS["table"])], "none")
    assert tally(found, 0)[1] == 0
    assert "sandbox alone" in found.counts[0].faults[0].text


CUTS = """
def keep(alert):
    if alert.flux < 300:
        return False
    return alert.flux > 500 and alert.id % 2 == 1
""".strip()
CONDITIONS = ["line 2: if alert.flux < 300", "line 4: alert.flux > 500", "line 4: alert.id % 2 == 1"]
IN_SQL = "flux >= 300 AND flux > 500 AND visit = 8"


@pytest.mark.parametrize("how", ["compiled", "guessed", "narrow", "sql", "contained"])
def test_what_stopped_a_sample_is_told_however_a_filter_is_judged(
    how: str, judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    one = {
        "compiled": compiled(0, CUTS),
        "guessed": live(0, CUTS),
        "narrow": live(0, CUTS, fields=("flux", "id")),
        "contained": live(0, CUTS, fields=("flux", "id")),
        "sql": live(0, IN_SQL, language="sql", program=compile_sql(IN_SQL, "sim").dumps()),
    }[how]
    _prober.cache_clear()  # nothing was spent yet
    found = judge(alerts[:64], [one], "weak" if how == "contained" else "none")
    (stopped,) = found.counts[0].stopped.values()
    names = ["flux >= 300", "flux > 500", "visit = 8"] if how == "sql" else CONDITIONS
    assert stopped == dict(zip(names, [29, 21, 14] if how == "sql" else [29, 21, 7], strict=True))
    assert sum(stopped.values()) == 64 - len(passes(found, 0))


def test_what_is_asked_of_a_transform_is_its_filter_alone() -> None:
    whole = "ADDS = {'a': float}\n" + CLASSY + "\ndef transform(alert):\n    return {'a': 1.0}"
    one = live(0, whole, transform="transform")
    found = one.text_facts.probe
    assert found is not None
    asked = instrumented(one, found)
    assert (asked.transform, asked.key) == ("", "owner0/f-stopped")
    assert live(0, "flux >", language="sql").text_facts.probe is None


def test_what_is_asked_stays_within_its_share_of_the_time() -> None:
    batch = pa.RecordBatch.from_pydict({"diaSource.psfFlux": pa.array([100.0, 400.0, 600.0])})
    columns, known = AlertTable(batch, survey("sim")), AlertIdentities(*[[]] * 6)
    some = Alerts("sim", columns, batch, known, [], [], decoder=AlertDecoder(SchemaRegistry("http://h:9")))
    fast = [live(number, "def keep(alert):\n    return alert.flux > 300") for number in range(3)]
    filters = [
        (n, accepted(replace(one, program=compile_python(one.source).dumps()))) for n, one in enumerate(fast)
    ]
    verdicts, prober = [Verdict(0), Verdict(1, late=True), Verdict(2)], Prober()

    def asked(spent: float) -> dict[int, Mapping[str, int]]:
        found = prober.ask(some, filters, verdicts, judge_in_process(1.0), spent)
        return {one.number: one.stopped for one in found if one.stopped}

    line = {"line 2: alert.flux > 300": 1}
    assert asked(0.0) == {}
    assert asked(1e-9) == {0: line}  # and now the time is spent, for long
    assert asked(1e-9) == {}
    assert asked(10.0).keys() <= {2, 0}  # in turn; never who is late
    assert asked(10.0)


@pytest.mark.slow
def test_the_hits_say_where_and_when_and_what(judge: Callable[..., JudgedBatch], alerts: list[bytes]) -> None:
    found = judge(alerts, [compiled(0, RANKED)])
    assert [at.alert for at in found.alerts] == [str(number) for number in range(91, 101)]
    assert {at.visit for at in found.alerts} == {7}
    assert [at.timestamp for at in found.alerts] == [1000 + number for number in range(90, 100)]
    assert passes(found, 0)["91"] == 910.0


@pytest.mark.slow
def test_sql_is_judged_over_columns(judge: Callable[..., JudgedBatch], alerts: list[bytes]) -> None:
    program = compile_sql("flux > 500 AND visit = 7", "sim").dumps()
    found = judge(
        alerts, [LiveFilter("me", "sql", 1, "*", "flux > 500", "", language="sql", program=program)]
    )
    assert set(passes(found, 0)) == {str(number) for number in range(51, 101)}


@pytest.mark.slow
def test_a_filter_of_another_survey_is_not_asked(
    judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    other = LiveFilter("me", "f", 1, "ztf", BRIGHT, "keep")
    found = judge(alerts, [other, compiled(1, BRIGHT)])
    assert [one.filters for one in found.counts] == [[1], [1]]


def test_a_field_that_nobody_has_is_the_fault_of_its_filter_alone(
    judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    odd = live(0, "def keep(alert):\n    return alert['no']['where'] > 1", fields=("no.where",))
    found = judge(alerts, [odd, compiled(1, BRIGHT)])
    assert tally(found, 0) == (100, 0, 100)
    assert len(passes(found, 1)) == 50


def test_a_field_without_a_column_is_read_from_whole_alerts() -> None:
    known = live(0, OWN, fields=("diaSource.snr",))
    unfit = SurveyKnowledge(unfit={"diaSource.snr"})
    wanted = column_requirements([(0, known), (1, compiled(1, BRIGHT))], "sim", unfit)
    assert ([n for n, _ in wanted.programs], wanted.narrow, [n for n, _ in wanted.wide]) == ([1], [], [0])
    assert "diaSource.snr" not in wanted.fields


@pytest.mark.parametrize("sandbox", ["none", "weak"])
def test_a_filter_that_makes_up_a_name_is_judged_on_whole_alerts(
    sandbox: str, judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    sly = "def keep(a):\n    left, right = ('psf', 'Flux')\n    return a['diaSource'][left + right] > 500"
    found = judge(alerts, [live(0, sly)], sandbox)
    assert len(passes(found, 0)) == 50
    assert tally(found, 0) == (100, 50, 0)


def test_no_filter_at_all(judge: Callable[..., JudgedBatch], alerts: list[bytes]) -> None:
    found = judge(alerts, [])
    assert [(one.read, one.undecodable, one.passed_alerts) for one in found.counts] == [
        (51, 0, 0),
        (51, 2, 0),
    ]


@pytest.mark.parametrize("sandbox", ["none", "weak"])
def test_a_filter_that_is_late_on_the_last_alert_is_late(
    sandbox: str, judge: Callable[..., JudgedBatch], encode: Callable[..., bytes]
) -> None:
    loop = "def keep(alert):\n    while alert.flux == 20.0: pass\n    return True"
    found = judge([encode(1), encode(2, 20.0)], [live(0, loop)], sandbox)
    assert tally(found, 0) == (2, 1, 1)
    assert [list(one.late) for one in found.counts] == [[], [0]]
    assert "(line 2: while alert.flux == 20.0: pass)" in found.counts[1].faults[0].text


def test_a_late_filter_faults_what_it_has_not_seen(
    judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    loop = "def keep(alert):\n    while alert.id == 60: pass\n    return True"
    found = judge(alerts, [live(0, loop), compiled(1, BRIGHT)])
    assert tally(found, 0) == (100, 59, 41)
    assert [list(one.late) for one in found.counts] == [[], [0]]
    assert len(passes(found, 1)) == 50


@pytest.mark.parametrize("fields", [(), ("flux", "id", "diaSource.diaSourceId")])
def test_the_sandbox_says_the_same(
    fields: tuple[str, ...], judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    filters = [live(number, source, fields=fields) for number, source in enumerate(SOURCES)]
    here, apart = judge(alerts, filters), judge(alerts, filters, "weak")
    for number in range(len(SOURCES)):
        assert passes(apart, number) == passes(here, number)
        assert tally(apart, number) == tally(here, number)


@pytest.mark.parametrize("make", [live, compiled])
def test_whether_a_record_is_there_is_told_by_a_field_of_it(
    make: Callable[[int, str], LiveFilter], judge: Callable[..., JudgedBatch], encode: Callable[..., bytes]
) -> None:
    there = (
        "def keep(alert):\n    return alert['diaObject'] is None and len(alert['prvDiaSources'] or []) == 0"
    )
    values = [encode(number) for number in range(1, 11)]
    found = judge(values, [make(0, there)])
    assert tally(found, 0) == (10, 10, 0)


ONES = f"def never():\n    return {'+'.join('1' * 2_924)}\n"
HEX = f"X = 0x{'f' * 5_000}\n"


@pytest.mark.parametrize("sandbox", ["none", "weak"])
def test_what_an_engine_should_not_have_accepted_is_its_own_fault_alone(
    sandbox: str, judge: Callable[..., JudgedBatch], alerts: list[bytes]
) -> None:
    """Records that no catalog writes, and texts that an earlier one did: nobody else notices."""
    bad = [
        LiveFilter("a", "f", 1, "sim", BRIGHT, "keep", program="{"),
        LiveFilter("b", "f", 1, "sim", BRIGHT, "keep", facts="no facts"),
        LiveFilter("c", "f", 1, "sim", ONES + BRIGHT, "keep"),
        LiveFilter("d", "f", 1, "sim", HEX + BRIGHT, "keep", program=compile_python(BRIGHT).dumps()),
        LiveFilter("e", "f", 1, "sim", "flux " + 9_000 * "(", "", language="sql"),
    ]
    found = judge(alerts, [*bad, compiled(5, BRIGHT), live(6, CLASSY)], sandbox)
    assert set(passes(found, 5)) == {str(number) for number in range(51, 101)}
    assert set(passes(found, 6)) == {str(number) for number in range(71, 101)}
    assert {number for one in found.counts for number in one.late} >= {0, 1}
    reasons = bad_filters(found.counts)
    assert reasons.keys() >= {0, 1}
    assert all("cannot be judged" in reasons[number] for number in (0, 1))


ASKING = {
    "gaia": 'alert.match("gaia", 2) is not None',
    "targets": 'alert.match("me/targets", 2) is not None',
    "area": 'alert.in_moc("area")',
    "nothing": "alert.flux > 0",
}


@pytest.fixture
def placed(encode: Callable[..., bytes]) -> list[bytes]:
    """Return alerts at a star, at another, at a target, and nowhere."""
    return [encode(number + 1, ra=ra or 200.0, dec=dec) for number, (ra, dec) in enumerate(POSITIONS)]


def asking(tmp_path: Path) -> list[LiveFilter]:
    """Return filters of one owner that ask for catalogues."""
    store = stocked(tmp_path)
    found = []
    for name, body in ASKING.items():
        source = f"def keep(alert):\n    return {body}\n"
        made = matched.compiled(source, store)
        found.append(LiveFilter("me", name, 1, "sim", source, "keep", program=made.text, facts=made.facts))
    return found


def test_filters_find_matches_in_what_a_worker_reads(
    judge: Callable[..., JudgedBatch], placed: list[bytes], tmp_path: Path
) -> None:
    found = judge(placed, asking(tmp_path))
    assert [sorted(passes(found, number)) for number in range(4)] == [
        ["1", "2"], ["3"], ["1"], ["1", "2", "3", "4"],
    ]  # fmt: skip


@pytest.mark.parametrize("how", ["gone", "broken"])
def test_a_catalogue_that_is_not_there_fails_those_alone_who_ask_for_it(
    how: str,
    judge: Callable[..., JudgedBatch],
    placed: list[bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    filters, whole = asking(tmp_path), Catalogue.match

    def broken(self: Catalogue, *given: Any) -> Any:
        if self.description.name == "gaia":
            raise OSError("the disk is gone")
        return whole(self, *given)

    if how == "gone":
        CatalogueStore(tmp_path / "catalogues").remove("gaia")
    else:
        monkeypatch.setattr(Catalogue, "match", broken)
    found = judge(placed, filters)
    assert [sorted(passes(found, number)) for number in range(4)] == [[], ["3"], ["1"], ["1", "2", "3", "4"]]
    fault = next(one.faults[0].text for one in found.counts if 0 in one.faults)
    assert ("no catalogue gaia in version" if how == "gone" else "OSError: the disk is gone") in fault
