"""Reasons name the lines that an owner sees: of a notebook's cell, or of the script."""

import json
from pathlib import Path

import pytest

from nightwire.filters.authoring.client import file_source_map
from nightwire.filters.authoring.extract import extract
from nightwire.filters.authoring.notebook import Cell, code_cells, join_cells, python_of, source_map
from nightwire.filters.language import NotCompilable, compile_python

CELLS = [
    Cell(1, "import numpy as np\nprint('a sample')"),
    Cell(4, "%%time\nLIMIT = 19\n\n\ndef faint(alert):\n    return {alert.magnitude} > LIMIT"),
    Cell(
        7,
        "def keep(alert):\n    text = (f := alert.flux)\n    while text:\n        1\n    return faint(alert)",
    ),
]


def reasons(source: str) -> list[str]:
    with pytest.raises(NotCompilable) as caught:
        compile_python(source)
    return caught.value.reasons


def test_reasons_name_the_cell_and_its_line() -> None:
    script = join_cells(cell.text for cell in CELLS)
    source = extract(script)
    told = source_map(source, script, CELLS).translate(reasons(source))
    assert [one.partition(": ")[0] for one in told] == [
        "cell 4, line 6",
        "cell 7, line 2",
        "cell 7, line 3",
    ]


def test_reasons_name_the_line_of_a_script() -> None:
    script = "print('a sample')\n\n\n\n" + CELLS[2].text.replace("faint(alert)", "False")
    source = extract(script)
    told = source_map(source, script).translate(reasons(source))
    assert [one.partition(": ")[0] for one in told] == ["line 6", "line 7"]
    fault = ["ZeroDivisionError: division by zero (line 3: text = 1 / 0)", "line 99: is nowhere"]
    assert source_map(source, script).translate(fault) == [fault[0].replace("line 3", "line 6"), fault[1]]


def test_cells_are_called_by_the_numbers_that_jupyter_shows(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["a title"]},
        {"cell_type": "code", "source": ["X = 1\n", "Y = 2"], "execution_count": None},
        {"cell_type": "code", "source": [CELLS[1].text], "execution_count": 12},
        {"cell_type": "code", "source": [CELLS[2].text], "execution_count": 13},
    ]
    file = tmp_path / "mine.ipynb"
    file.write_text(json.dumps({"cells": cells}))
    assert [cell.number for cell in code_cells(file.read_text())] == [1, 12, 13]
    source = extract(python_of(file.read_text(), notebook=True))
    assert file_source_map(file, source).translate(["line 4: odd"])[0].startswith("cell 12, line ")
