"""The mixture of filters."""

import pytest

from benchmarks.tests.conftest import COUNT
from nightwire.benchmarks.environment.alert_pool import Alert
from nightwire.benchmarks.environment.filter_mixture import (
    CODE,
    COMPILED,
    MixedFilter,
    habit_kinds,
    habits,
    mixture,
)
from nightwire.filters.language import (
    NotCompilable,
    compile_filter,
    compile_python,
    compile_sql,
    evaluate,
    objections,
)
from nightwire.schemas import AlertTable, Codec, sim_alert_schema, survey


@pytest.mark.slow
def test_a_fifth_of_a_hundred_cannot_be_compiled(hundred: list[MixedFilter]) -> None:
    compiled, code = 0, []
    for one in hundred:
        if one.kind.sql:
            compile_sql(one.source, "sim")
            compiled += 1
            continue
        assert objections(one.source, "keep") == []
        try:
            compile_python(one.source)
            compiled += 1
        except NotCompilable:
            code.append(one.kind)
    assert compiled == 80
    assert set(code) == set(CODE)
    assert all(not kind.compiles for kind in code)


def test_filters_differ_and_each_owner_has_some(hundred: list[MixedFilter], pool: list[Alert]) -> None:
    thousand = mixture(1000, 50, pool)
    assert len({one.source for one in thousand}) > 900
    assert len({(one.owner, one.name) for one in thousand}) == 1000
    assert sum(not one.kind.compiles for one in thousand) == 50
    assert {one.kind for one in hundred} == {*COMPILED, *CODE}
    assert len({one.owner for one in hundred}) == 10


@pytest.mark.slow
def test_each_owner_has_all_notebooks_and_four_of_them_are_slow() -> None:
    six = habits(6, habit_kinds())
    assert len({one.key for one in six}) == 102
    slow = {one.name for one in six if one.slow}
    assert slow == {"astropy-coordinates", "astropy-time", "pandas-history", "statistics-and-itertools"}
    assert {name for one in six for name in objections(one.source, "keep")} == set()


def test_each_filter_passes_its_share(hundred: list[MixedFilter], pool: list[Alert]) -> None:
    """By the compiled program where there is one; else by Python, alert by alert."""
    sim, codec = survey("sim"), Codec(sim_alert_schema())
    bodies = [codec.encode(alert) for alert in pool]
    for one in hundred[: len(COMPILED)] + hundred[-len(CODE) :]:
        if one.kind.compiles:
            program = compile_sql(one.source, "sim") if one.kind.sql else compile_python(one.source)
            names = [name for name in program.names if not name.endswith("?")]
            table = AlertTable(codec.columns(bodies, AlertTable.fields(names, sim, codec.schema)), sim)
            verdicts = evaluate(program, table)
            assert not verdicts.faults, one.name
            passed = int(verdicts.passed.sum())
        else:
            keep = compile_filter(one.source, "keep")
            passed = sum(bool(keep(sim.view(alert))) for alert in pool)
        assert 0.003 <= passed / COUNT <= 0.05, one.name
        assert passed == pytest.approx(one.share * COUNT, abs=2.5), one.name


def test_a_condition_is_also_a_function_that_passes_the_same(
    hundred: list[MixedFilter], pool: list[Alert]
) -> None:
    """What is measured beside the engine judges as the engine does."""
    sim, codec = survey("sim"), Codec(sim_alert_schema())
    bodies = [codec.encode(alert) for alert in pool]
    conditions = {one.kind: one for one in hundred if one.kind.sql}
    assert conditions
    for one in conditions.values():
        program = compile_sql(one.source, "sim")
        table = AlertTable(codec.columns(bodies, AlertTable.fields(program.names, sim, codec.schema)), sim)
        keep = compile_filter(one.function, "keep")
        assert [bool(keep(sim.view(alert))) for alert in pool] == evaluate(program, table).passed.tolist()
