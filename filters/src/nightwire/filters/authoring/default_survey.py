"""The survey of a filter for which none is named: its notebook's SURVEY, else the only one here."""

import ast
from collections.abc import Mapping, Sequence

from nightwire.core import kafka
from nightwire.core.kafka import all_watermarks
from nightwire.filters.language import FilterError
from nightwire.filters.model.chains import is_derived

NAME = "SURVEY"
"""The constant of a notebook or script that names its survey."""

SIMULATED = "sim"
"""The survey while there are no alerts: the one that needs no telescope."""


def default_survey(bootstrap: str, code: str = "", sources: Sequence[str] = ()) -> str:
    """Return the survey of a filter for which none is named; ``*`` for one that reads other topics.

    Args:
        bootstrap: Kafka's address.
        code: The Python of its notebook or script; empty for SQL.
        sources: Topics that it judges; none for the survey's alerts.

    Raises:
        FilterError: Several surveys have alerts here.
        KafkaException: Kafka does not answer.
    """
    if named := survey_in(code):
        return named
    if sources:
        only = {topic.partition(".")[2] for topic in sources}
        return "*" if any(map(is_derived, sources)) or len(only) > 1 else only.pop()
    return only_survey(alert_counts(bootstrap))


def survey_in(code: str) -> str | None:
    """Return the text that *code* gives to SURVEY last, at its top level; None for none."""
    try:
        steps = ast.parse(code).body
    except SyntaxError:  # whoever compiles it says where
        return None
    found = None
    for node in steps:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))) if name == NAME:
                found = text
    return found


def only_survey(counts: Mapping[str, int]) -> str:
    """Return the only survey that has alerts, or while none has any, a topic.  Pure.

    Args:
        counts: Number of alerts of each survey that has a topic.

    Raises:
        FilterError: There are several.
    """
    here = [name for name, count in counts.items() if count] or sorted(counts)
    if len(here) == 1:
        return here[0]
    if not here or (SIMULATED in here and not any(counts.values())):
        return SIMULATED
    raise FilterError(f"name a survey (--survey): several are here: {', '.join(sorted(here))}")


def alert_counts(bootstrap: str) -> dict[str, int]:
    """Return the number of alerts of each survey whose topic we may see.

    Raises:
        KafkaException: Kafka does not answer.
    """
    client = kafka.admin(bootstrap)
    topics = client.list_topics(timeout=10).topics
    found = {name: name.partition(".")[2] for name in topics if name.startswith("alerts.")}
    held = all_watermarks(client, [(name, part) for name in found for part in topics[name].partitions])
    counts = dict.fromkeys(found.values(), 0)
    for (name, _), bounds in held.items():
        counts[found[name]] += bounds.high - bounds.low
    return counts
