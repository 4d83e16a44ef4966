"""Part."""

from datetime import datetime, timedelta
from typing import Any

import click


class Since(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no arguments there
    """How long ago, or when."""

    name = "since"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what *value* spells; fail with what to write instead."""
        from nightwire.consumers.source.timespec import parse_since

        if isinstance(value, timedelta | datetime):
            return value
        try:
            return parse_since(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Names(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no arguments there
    """Names, with commas between them."""

    name = "names"

    def convert(self, value: Any, _param: click.Parameter | None, _ctx: click.Context | None) -> Any:
        """Return the names that *value* holds."""
        return (
            value if isinstance(value, list) else [name.strip() for name in value.split(",") if name.strip()]
        )
