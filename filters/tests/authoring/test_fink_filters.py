"""Fink's filters: functions of columns, judged as pandas judges them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nightwire.filters.authoring.client import file_submission
from nightwire.filters.language import compile_filter
from nightwire.filters.model.compilation import compile_request
from nightwire.filters.model.text_facts import load_facts
from nightwire.filters.reading.requirements import named_columns
from nightwire.filters.sandbox import RowFilter, Sandbox
from nightwire.schemas import AlertDecoder, AlertTable, SchemaRegistry, survey, wire

FINK = sorted((Path(__file__).parents[2] / "notebooks" / "fink").glob("*.py"))
UNCHANGED = '''
import pandas as pd

def helper(rb):
    return rb.astype(float) >= 0.55

def ztf_quality_cuts_(rb, nbad) -> pd.Series:
    """Return alerts considered as scientifically valid for ZTF"""
    return helper(rb) & (nbad.astype(int) == 0)
'''


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield a sandbox, as strong as this machine has it."""
    with Sandbox("weak") as one:
        yield one


def containers(data: Path) -> list[bytes]:
    """Return real alerts of ZTF's, as they came."""
    return [path.read_bytes() for path in sorted((data / "alerts/ztf/kowalski").rglob("*.avro"))]


def in_sandbox(sandbox: Sandbox, source: str, entry: str, values: list[bytes]) -> list[int]:
    """Return which alerts pass."""
    request = {"language": "python", "source": source, "entry": entry, "survey": "ztf"}
    made = compile_request(request)
    assert made.remark_lines == ["judged over columns, many alerts at once"]
    facts = load_facts(made.facts)
    one = RowFilter("me", "fink", 1, source, entry, imports=facts.imports, columns=facts.columns)
    fields = named_columns(facts)
    assert fields
    paths = AlertTable.fields(fields, survey("ztf"))
    decoder = AlertDecoder(SchemaRegistry(None))
    batch = decoder.columns(values, paths, missing_ok=True).batch
    outcome = sandbox.judge([replace(one, fields=fields)], "ztf", batch=batch)["me/fink"]
    assert not outcome.faults, outcome
    return [int(row) for row in outcome.passed]


def by_pandas(source: str, entry: str, columns: tuple[str, ...], values: list[bytes]) -> list[int]:
    """Return which alerts pass, by the function itself."""
    records = [next(iter(wire.read_container(value))).record for value in values]
    given = [pd.Series([_at(one, path) for one in records]) for path in columns]
    function: Any = compile_filter(source, entry)
    return [int(row) for row in np.flatnonzero(function(*given))]


def _at(record: Any, path: str) -> Any:
    for name in path.split("."):
        record = record[name]
    return record


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("path", FINK, ids=lambda path: path.stem)
def test_each_judges_real_alerts_as_pandas_does(path: Path, data: Path, sandbox: Sandbox) -> None:
    submission = file_submission(path, None, None)
    values = containers(data)
    request = {**submission.fields(), "survey": "ztf"}
    columns = load_facts(compile_request(request).facts).columns
    assert columns
    expected = by_pandas(submission.source, "keep", columns, values)
    assert in_sandbox(sandbox, submission.source, "keep", values) == expected
    assert len(expected) < len(values) > 30


def test_a_function_of_finks_travels_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "cuts.py"
    file.write_text(UNCHANGED)
    columns = ["candidate.rb", "candidate.nbad"]
    submission = file_submission(file, None, "ztf_quality_cuts_", columns=columns)
    facts = load_facts(compile_request({**submission.fields(), "survey": "ztf"}).facts)
    assert facts.columns == tuple(columns)
    assert "pandas" in facts.imports
    function: Any = compile_filter(submission.source, submission.entry)
    assert function(pd.Series([0.5, 0.6, 0.7]), pd.Series([0, 0, 1])).tolist() == [False, True, False]
