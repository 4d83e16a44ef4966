"""The schemas of the alerts that a filter reads, of the registry or brought by these alerts."""

from collections.abc import Mapping, Sequence
from typing import Any

from nightwire.filters.language import SurveySchemas, schema_names
from nightwire.filters.language.vector import schemas_of
from nightwire.filters.model.chains import is_derived
from nightwire.filters.reading.recent import Sample
from nightwire.schemas import AlertDecoder, SchemaRegistry, sim_alert_schema


def known_schemas(
    registry: SchemaRegistry, surveys: Sequence[str], sources: Sequence[str], samples: Sequence[Sample]
) -> list[SurveySchemas]:
    """Return the schemas of the alerts that a filter reads.

    What other filters send on may have fields more or less than its survey's schemas: of these
    alerts, those that came lately say which.

    Args:
        registry: Knows schemas; where it has none of a survey, its alerts may bring theirs along.
        surveys: Whose alerts it judges.
        sources: The topics in which they lie; none for the surveys' own.
        samples: Some of these alerts.
    """
    derived, found = any(map(is_derived, sources)), []
    for name in surveys:
        values = [value for whose, value in samples if whose == name]
        schemas: list[Mapping[str, Any]] = [*registry.of_survey(name)]
        if derived or not schemas:
            came = [*schemas_of(values, AlertDecoder(registry))]
            schemas = [*came, *schemas] if came else []
        if not schemas and not derived and name == "sim":
            schemas = [sim_alert_schema()]
        found.append(SurveySchemas(name, [*map(schema_names, schemas)]))
    return found
