"""The list of mutants fits the source."""

from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from native.tests.mutants import MUTANTS, Mutant, patched
from native.tests.sources import NATIVE, source_hash
from nightwire.schemas import Codec, SchemaError
from nightwire.schemas.avro import native_engine
from nightwire.schemas.avro.native_engine import SOURCES


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_changes_one_place(mutant: Mutant) -> None:
    source = (NATIVE / "src" / mutant.file).read_text()
    assert patched(mutant, source) != source


def test_the_codec_wants_a_build_of_these_sources() -> None:
    assert source_hash(NATIVE) == SOURCES, "SOURCES in native_engine.py goes with the sources"


@pytest.mark.native
def test_the_installed_build_is_of_these_sources() -> None:
    import nightwire_native

    assert nightwire_native.__sources__ == source_hash(NATIVE)


@pytest.mark.parametrize(
    ("installed", "why"),
    [
        (None, "is not built"),
        (ModuleType("nightwire_native"), "of other sources"),  # as builds before the hash have none
        (SimpleNamespace(__version__="0.1.0", __sources__="0123456789abcdef"), "of other sources"),
    ],
)
def test_a_build_of_other_sources_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, installed: object, why: str
) -> None:
    monkeypatch.setattr(native_engine, "native", installed)
    assert not native_engine.available()
    with pytest.raises(SchemaError, match=why):
        Codec({"type": "record", "name": "r", "fields": []}, engine="native")


def test_direct_dependencies_are_pinned() -> None:
    text = Path(NATIVE, "Cargo.toml").read_text().split("[dependencies]")[1].split("\n\n")[0]
    lines = [line for line in text.strip().splitlines() if line]
    assert lines
    assert [line for line in lines if '"=' not in line] == []
