"""Which fields a filter that is code may read."""

from pathlib import Path

import pytest

from nightwire.filters.language import mentioned_names, parsed
from nightwire.filters.model.text_facts import canonical_mentioned
from nightwire.filters.reading.requirements import schema_fields
from nightwire.schemas import Codec, sim_alert_schema, survey, wire


@pytest.mark.parametrize(
    "body",
    [
        "return alert[f'{name}Flux'] > 1",
        "return alert['psf' + kind] > 1",
        "return alert['%sFlux' % kind] > 1",
        "return sum(v for v in alert['diaSource'].values()) > 1",
        "return pd.DataFrame(alert['prvDiaSources']).mean() > 1",
        "return any(alert[name] == 1 for name in alert)",
        "return helper(**alert)",
    ],
)
def test_who_makes_names_or_takes_records_whole_may_read_anything(body: str) -> None:
    assert mentioned_names(parsed(f"def keep(alert):\n    {body}"), "keep") is None


def test_names_are_found_in_helpers_constants_and_text() -> None:
    source = (
        "NAMES = ('psfFlux', 'apFlux')\n"
        "def ratio(source):\n    return source[NAMES[0]] / source.get(NAMES[1])\n"
        "def keep(alert):\n    return ratio(alert['diaSource']) > 1 and alert.galactic_latitude > 10\n"
    )
    found = mentioned_names(parsed(source), "keep")
    assert found is not None
    assert {"diaSource", "psfFlux", "apFlux"} <= found
    assert canonical_mentioned(found) == ["galactic_latitude"]
    mine = set(schema_fields(sim_alert_schema()).mentioned(found))
    assert {"diaSource.psfFlux", "diaSource.apFlux"} <= mine
    assert not [path for path in mine if path.startswith("prv")]


def test_history_is_read_by_attribute_and_a_light_curve_as_a_whole() -> None:
    found = mentioned_names(parsed("def keep(a):\n    return max(p.flux for p in a.history) > 1"), "keep")
    assert found is not None
    assert canonical_mentioned(found) == ["flux", "history.mjd_tai", "history.flux"]
    curve = mentioned_names(parsed("def keep(a):\n    return a.light_curve()['flux'].max() > 1"), "keep")
    assert curve is not None
    assert canonical_mentioned(curve) == ["flux", "light_curve"]


def test_a_record_that_is_mentioned_can_be_told_from_none() -> None:
    nothing = {"type": "record", "name": "R", "fields": [{"name": "x", "type": ["null", "int"]}]}
    sure = {
        "type": "record",
        "name": "S",
        "fields": [{"name": "y", "type": ["null", "int"]}, {"name": "z", "type": "int"}],
    }
    top = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "a", "type": ["null", nothing]}, {"name": "b", "type": ["null", sure]}],
    }
    assert sorted(schema_fields(top).mentioned(frozenset({"a", "b"}))) == ["a.x", "b.z"]
    assert list(schema_fields(top).mentioned(frozenset({"y"}))) == []


def test_a_record_within_itself_has_an_end() -> None:
    loop = {
        "type": "record",
        "name": "L",
        "fields": [{"name": "n", "type": "int"}, {"name": "next", "type": ["null", "L"]}],
    }
    assert ("n",) in schema_fields(loop).leaves


@pytest.mark.data
def test_all_fields_of_a_real_schema_are_known(data: Path) -> None:
    container = (data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()
    codec = Codec(next(iter(wire.read_container(container))).schema)
    found = schema_fields(codec.schema)
    assert len(found.leaves) > 300
    assert all(codec.has(".".join(steps)) for steps in found.leaves)
    assert set(survey("lsst").fields(codec.schema)) <= {".".join(steps) for steps in found.leaves}
