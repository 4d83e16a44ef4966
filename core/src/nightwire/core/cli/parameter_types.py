"""Types of options: durations (``30s``, ``1h30m``), sizes (``20MB``, ``1.5GiB``), surveys."""

import re
from datetime import timedelta
from typing import Any

import click
from click.shell_completion import CompletionItem

DURATION_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
"""Length of each unit. [s]"""

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def parse_duration(text: str) -> timedelta:
    """Return the duration in *text*, such as ``30s``, ``5m``, ``1h30m``, ``2d`` or ``500ms``.

    Raises:
        ValueError: It is malformed; the message says what to write.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} has no unit: write {text}s, {text}m, {text}h or {text}d")
    if not _DURATION.fullmatch(text):
        raise ValueError(
            f"{text!r} is no duration: write a number and s, m, h or d, such as 30s, 5m, 1h or 2d"
        )
    seconds = sum(float(number) * DURATION_UNITS[unit] for number, unit in _PART.findall(text))
    if seconds > timedelta.max.total_seconds():
        raise ValueError(f"{text!r} must be shorter than {timedelta.max.days} days")
    return timedelta(seconds=seconds)


class Duration(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no arguments there
    """An option that is a duration; its value is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return *value* in seconds."""
        try:
            return parse_duration(value).total_seconds()
        except ValueError as error:
            self.fail(str(error), param, ctx)


SIZE_UNITS = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip
"""Length of each unit. [byte]"""

_SIZE = re.compile(rf"(\d+(?:\.\d+)?)\s*({'|'.join(SIZE_UNITS)})")


def parse_size(text: str) -> int:
    """Return the size that *text* spells. [byte]

    Raises:
        ValueError: It spells none; the message says what to write.
    """
    if (found := _SIZE.fullmatch(text.strip())) is None:
        raise ValueError(f"{text!r} is no size: write a number and {', '.join(SIZE_UNITS)}, such as 20MB")
    return round(float(found[1]) * SIZE_UNITS[found[2]])


def spell_size(size: float) -> str:
    """Return *size* [byte] in the largest decimal unit that it has one of: ``20MB``."""
    unit = next((unit for unit in ("GB", "MB", "kB") if size >= SIZE_UNITS[unit]), "B")
    return f"{size / SIZE_UNITS[unit]:.4g}{unit}"


class Size(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no arguments there
    """An option that is a size; its value is in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return *value* in bytes."""
        if isinstance(value, int):
            return value
        try:
            return parse_size(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SurveyName(click.ParamType):  # type: ignore[type-arg]
    """The name of a survey that nightwire knows; errors say which those are."""

    name = "survey"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return *value*, where there is such a survey."""
        from nightwire.schemas import meant

        if value not in (known := _known()):
            self.fail(f"no survey {value!r}; there are: {', '.join(known)}{meant(value, known)}", param, ctx)
        return value

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the surveys that begin so."""
        return [CompletionItem(name) for name in _known() if name.startswith(incomplete)]

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return the message that lists the surveys."""
        return f"There are: {', '.join(_known())}; or describe one of your own (NIGHTWIRE_SURVEYS=folder)."


def _known() -> list[str]:
    from nightwire.schemas import SchemaError, surveys

    try:
        return surveys()
    except SchemaError as error:
        raise click.UsageError(str(error)) from error


survey_option = click.option(
    "--survey",
    required=True,
    type=SurveyName(),
    metavar="NAME",
    help="Survey that the alerts are of: lsst, ztf, …",
)
