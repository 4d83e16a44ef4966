"""The list of mutants fits the source."""

import re
from pathlib import Path

import pytest

from native.tests.mutants import MUTANTS, NATIVE, Mutant, patched
from nightwire.schemas.avro.native_engine import WANTED


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_changes_one_place(mutant: Mutant) -> None:
    source = (NATIVE / "src" / mutant.file).read_text()
    assert patched(mutant, source) != source


def test_the_codec_wants_the_version_that_is_built() -> None:
    found = re.search(r'^version = "(.*)"$', Path(NATIVE, "Cargo.toml").read_text(), re.MULTILINE)
    assert found
    assert found[1] == WANTED


def test_direct_dependencies_are_pinned() -> None:
    text = Path(NATIVE, "Cargo.toml").read_text().split("[dependencies]")[1].split("\n\n")[0]
    lines = [line for line in text.strip().splitlines() if line]
    assert lines
    assert [line for line in lines if '"=' not in line] == []
