"""The options of the Spark source `nightwire`, read and checked.  Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from nightwire.filters._spark_columns import USUAL
from nightwire.schemas import surveys

ALERTS = "alerts."
MODES = ("FAILFAST", "DROPMALFORMED")
NAMES = ("survey", "topic", "fields", "bootstrap", "registry", "starting", "batch", "tasks", "mode")


@dataclass(frozen=True)
class Options:
    """What to read.

    Attributes:
        survey: Whose alerts.
        topic: Where they lie.
        fields: Canonical names and dotted paths.
        bootstrap: Kafka's address; None: the environment's, else the embedded stack's.
        registry: Of the schema registry; None as above.
        starting: ``earliest``, ``latest``, or a time [ms since 1970, UTC].
        batch: Most records of a batch.
        tasks: Tasks of a batch.
        drop: Whether records that cannot be read are left out; else they are an error.
    """

    survey: str
    topic: str
    fields: tuple[str, ...]
    bootstrap: str | None
    registry: str | None
    starting: str | int
    batch: int
    tasks: int
    drop: bool


def options(given: Mapping[str, str], starting: str) -> Options:
    """Return the options.

    Args:
        given: By Spark, names in lower case.
        starting: Where to start if nothing is said.

    Raises:
        ValueError: One is unknown or faulty; says which.
    """
    given = {name.lower(): value for name, value in given.items()}
    if unknown := sorted(set(given) - set(NAMES)):
        raise ValueError(f"unknown option {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    topic = given.get("topic") or ALERTS + given.get("survey", "")
    name = given.get("survey") or topic.removeprefix(ALERTS)
    if name not in surveys():
        raise ValueError(f"option survey: {name!r} is none; there are: {', '.join(surveys())}")
    mode = given.get("mode", MODES[0]).upper()
    if mode not in MODES:
        raise ValueError(f"option mode: {mode!r} is none of {', '.join(MODES)}")
    fields = tuple(one.strip() for one in given.get("fields", ",".join(USUAL)).split(",") if one.strip())
    if not fields:
        raise ValueError("option fields: it names none; give names with commas between them, or leave it out")
    return Options(
        survey=name,
        topic=topic,
        fields=fields,
        bootstrap=given.get("bootstrap"),
        registry=given.get("registry"),
        starting=_starting(given.get("starting", starting)),
        batch=_count(given, "batch", 2500),
        tasks=_count(given, "tasks", 2),
        drop=mode == "DROPMALFORMED",
    )


def _count(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"option {name}: {text!r} is no whole number above 0")
    return int(text)


def _starting(text: str) -> str | int:
    if text in ("earliest", "latest"):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"option starting: {text!r} is neither earliest nor latest nor a time like 2026-11-21T04:30:00"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
