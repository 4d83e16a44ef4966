"""The schemas that names are held against: the registry's, or those that alerts bring along."""

import pytest

from filters.tests.language.test_field_names import schema
from nightwire.filters.admission.examination import known_schemas
from nightwire.schemas import Codec, SchemaRegistry, wire


@pytest.mark.kafka
def test_every_version_of_the_registry_is_known(registry_url: str) -> None:
    with SchemaRegistry(registry_url) as registry:
        for fields in ({"psfFlux": "float"}, {"psfFlux": "float", "trail": "float"}):
            registry.register("alerts.made-value", schema(**fields))
        (known, unknown) = known_schemas(registry, ["made", "unmade"], [], [])
        (quiet,) = known_schemas(registry, ["made"], ["filter.ann.bright"], [])
        more = registry.register("filter.ann.bright-value", schema(psfFlux="float", score="float"))
        body = Codec(schema(psfFlux="float", score="float")).encode({"diaSource": None, "tags": {}})
        came = [("made", wire.frame(more, body)), ("other", b"")]
        (derived,) = known_schemas(registry, ["made"], ["filter.ann.bright"], came)
    assert not quiet.versions
    assert [derived.count(f"diaSource.{name}") for name in ("score", "trail", "nope")] == [1, 1, 0]
    assert (known.count("diaSource.psfFlux"), known.count("diaSource.trail")) == (2, 1)
    assert not unknown.versions
