"""Twenty notebooks of astronomers: most judge as plain Python does, others are refused."""

import json
import math
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nightwire.core.runtime import NoStackError
from nightwire.filters.authoring.client import file_source
from nightwire.filters.authoring.notebook import join_cells
from nightwire.filters.language import FilterError, Program, evaluate
from nightwire.filters.model.compilation import compile_request
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.text_facts import TextFacts, text_facts
from nightwire.filters.reading.decode import decode_batch
from nightwire.filters.reading.requirements import SurveyKnowledge, column_paths, fields_read
from nightwire.filters.sandbox import RowFilter, Sandbox
from nightwire.schemas import (
    SIM_ALERT_ID,
    AlertDecoder,
    AlertTable,
    AlertView,
    Codec,
    SchemaRegistry,
    sim_alert_schema,
    survey,
    wire,
)

FOLDER = Path(__file__).parents[2] / "notebooks" / "habits"
REFUSED = {
    "network": "line 1: the filter uses requests, which the engine does not have: copy its code",
    "frame-inside": r"targets, which cannot travel: it is a pandas.*take the columns that the filter needs",
    "counting": r"line \d+: a filter may not change globals \(seen\)",
}
COMPILED = {"comprehensions", "helpers-and-a-dict", "numpy-cuts"}
"""Notebooks that are judged over columns; the others run in the sandbox."""

ACCEPTED = sorted(path.stem for path in FOLDER.glob("*.ipynb") if path.stem not in REFUSED)

Verdict = tuple[bool, float | None] | str
"""Passed and rank, or the name of the exception."""


def source(rng: random.Random, number: int, mjd: float) -> dict[str, Any]:
    """Return a measurement at random, some of its fields null."""
    band = rng.choice("ugrizy")
    return {
        "diaSourceId": number, "visit": 7, "midpointMjdTai": mjd,
        "band": rng.choice([band, band, band, "r", None]),
        "psfFlux": rng.choice([rng.gauss(400, 900), rng.gauss(50, 300), 10_000.0]),
        "psfFluxErr": rng.choice([rng.uniform(5, 60), 40.0]), "ra": rng.uniform(0, 360),
        "dec": math.degrees(math.asin(rng.uniform(-1, 1))),
    }  # fmt: skip


@pytest.fixture(scope="module")
def values(make_alert: Callable[..., dict[str, Any]]) -> list[bytes]:
    """Return sixty records of alerts, from none to thirty measurements in their history."""
    rng, codec, made = random.Random(5), Codec(sim_alert_schema()), []
    for number in range(1, 61):
        mjd = 60_000.0 + rng.uniform(0, 30)
        alert = make_alert(number, **{k: v for k, v in source(rng, number, mjd).items() if k != "psfFlux"})
        alert["diaSource"] |= source(rng, number, mjd)
        alert["diaSource"]["ssObjectId"] = rng.choice([None, None, 5])
        history = [
            source(rng, 1000 * number + i, mjd - rng.uniform(0, 9))
            for i in range(rng.choice([0, 1, 3, 9, 30]))
        ]
        alert["prvDiaSources"] = [{**alert["diaSource"], **one} for one in history]
        made.append(wire.frame(SIM_ALERT_ID, codec.encode(alert)))
    return made


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> AlertDecoder:
    """Return a decoder that knows simulated alerts."""
    return AlertDecoder(SchemaRegistry(None, cache_dir=tmp_path_factory.mktemp("schemas")))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox, as strong as this machine has it."""
    one = Sandbox("weak")
    yield one
    one.close()


def plain_python(name: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Return the function that a notebook defines; cells that need a stack are left out."""
    monkeypatch.chdir(FOLDER)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            with suppress(NoStackError, NameError):
                exec(join_cells(["".join(cell["source"])]), namespace)  # noqa: S102
    return namespace["keep"]  # type: ignore[no-any-return]


def verdict(keep: Callable[[Any], Any], alert: AlertView) -> Verdict:
    """Return the verdict of *keep* on an alert."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = keep(alert)
            passed = bool(result)
    except Exception as error:  # noqa: BLE001 - that is what is compared
        return type(error).__name__
    return passed, None if not passed or isinstance(result, bool | np.bool_) else float(result)


def same(one: Verdict, passed: bool, rank: float, fault: str | None) -> bool:
    """Return whether the engine's verdict is the same."""
    if isinstance(one, str) or fault:
        return isinstance(one, str) and (fault or "").startswith(one)
    return one[0] == passed and (not passed or one[1] == rank or (one[1] is None and math.isnan(rank)))


def test_there_are_twenty_and_most_are_accepted() -> None:
    assert len(ACCEPTED) + len(REFUSED) == 20
    assert len(ACCEPTED) >= 16


@pytest.mark.slow
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_notebooks_judge_as_plain_python(
    name: str, values: list[bytes], decoder: AlertDecoder, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts = [survey("sim").view(decoder.decode(value).alert) for value in values]
    keep = plain_python(name, monkeypatch)
    expected = [verdict(keep, alert) for alert in alerts]
    assert any(isinstance(one, tuple) and one[0] for one in expected)
    assert any(isinstance(one, tuple) and not one[0] for one in expected)
    travelled = file_source(FOLDER / f"{name}.ipynb", "keep")
    made = compile_request({"language": "python", "source": travelled, "entry": "keep", "survey": "sim"})
    assert (made.program is not None) == (name in COMPILED), made.remarks
    judged = [in_sandbox(sandbox, travelled, values=values, schemas={SIM_ALERT_ID: sim_alert_schema()})]
    facts = facts_of(travelled)
    needed = column_paths(("id", *facts.canonical), "sim")
    both = {
        "values": values,
        "schemas": {SIM_ALERT_ID: sim_alert_schema()},
        "batch": decoder.columns(values, needed, missing_ok=True).batch,
    }
    judged.append(in_sandbox(sandbox, travelled, canonical=facts.canonical, **both))
    if (fields := fields_of(travelled)) is not None:
        batch = decoder.columns(values, column_paths(fields, "sim"), missing_ok=True).batch
        judged.append(in_sandbox(sandbox, travelled, fields, batch=batch))
    if made.program:
        judged.append(over_columns(made.program, values, decoder))
    for by_engine in judged:
        wrong = [(at, one, by_engine[at]) for at, one in enumerate(expected) if not same(one, *by_engine[at])]
        assert not wrong


def fields_of(travelled: str) -> tuple[str, ...] | None:
    """Return the fields that a filter mentions; None where it may read any."""
    known, facts = SurveyKnowledge(), facts_of(travelled).dumps()
    known.meet(SIM_ALERT_ID, sim_alert_schema())
    return fields_read(LiveFilter("me", "habit", 1, "sim", travelled, "keep", facts=facts), known)


def facts_of(travelled: str) -> TextFacts:
    """Return the facts of a filter that is run row by row."""
    request = {"language": "python", "source": travelled, "entry": "keep", "survey": "sim"}
    return text_facts(request, compiled=False)


Judged = list[tuple[bool, float, str | None]]
"""Passed, rank and fault of each alert."""


def over_columns(program: Program, values: list[bytes], decoder: AlertDecoder) -> Judged:
    """Judge by a compiled filter."""
    batch, _ = decode_batch(values, program.names, "sim", decoder)
    table = AlertTable(batch, survey("sim"))
    found = evaluate(program, table)
    assert not len(found.needs_python)
    return [(bool(found.passed[at]), found.rank[at], found.faults.get(at)) for at in range(len(values))]


def in_sandbox(
    sandbox: Sandbox,
    travelled: str,
    fields: tuple[str, ...] | None = None,
    canonical: tuple[str, ...] = (),
    **alerts: Any,
) -> Judged:
    """Judge by a filter that is code."""
    one = RowFilter("me", "habit", 1, travelled, "keep", fields, canonical=canonical)
    outcome = sandbox.judge([one], "sim", **alerts)["me/habit"]
    assert not outcome.killed, outcome
    ranks: Mapping[int, float] = dict(zip(outcome.passed.tolist(), outcome.rank.tolist(), strict=True))
    rows = range(len(alerts.get("values", alerts.get("batch", ()))))
    return [(at in ranks, ranks.get(at, math.nan), outcome.faults.get(at)) for at in rows]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_notebooks_get_advice(name: str) -> None:
    with pytest.raises(FilterError, match=REFUSED[name]):
        file_source(FOLDER / f"{name}.ipynb", "keep")
