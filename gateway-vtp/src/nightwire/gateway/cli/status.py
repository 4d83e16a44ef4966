"""The verb ``nightwire gateway status``: who is connected, what came, who was refused."""

import json
from typing import Any

import click
import httpx

from nightwire.core.cli import Column, Listing, show_tables
from nightwire.gateway.status.tables import TABLES, Status, Table, cells
from nightwire.schemas import MendableError


class StatusError(MendableError):
    """No gateway answers; the message says where it was asked."""


def fetch_status(page: str, timeout: float = 10.0) -> dict[str, Any]:
    """Return the status of the gateway whose metrics page is at *page*, a URL or ``HOST:PORT``.

    Raises:
        StatusError: It does not answer, or is no gateway.
    """
    root = (page if "://" in page else f"http://{page}").removesuffix("/").removesuffix("/metrics")
    try:
        answer = httpx.get(f"{root}/status.json", timeout=timeout)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, json.JSONDecodeError) as error:
        raise StatusError(f"{root}: no gateway tells its status there ({error})") from error
    return found


def print_status(status: Status, *, wide: bool = False) -> None:
    """Print *status* as tables."""
    parts: list[str | Listing] = [
        f"[bold]{status['gateway']}[/bold] at {status['now']}, up since {status['started']}",
        *(f"  {one['role']} {one['address']}" for one in status["listening"]),
    ]
    for table in TABLES:
        rows = cells(table, status)
        parts.append(f"\n[bold]{table.title}[/bold]" + ("" if rows else f": {table.nothing}"))
        parts += [_listing(table, rows, wide=wide)] if rows else []
    show_tables(*parts)


def _listing(table: Table, rows: list[list[str]], *, wide: bool) -> Listing:
    """Return *rows* as verbs print them: a narrow terminal does without the last columns."""
    columns = [Column(one.title, order, one.number) for order, one in enumerate(table.columns)]
    return Listing(columns, [[click.unstyle(text) for text in row] for row in rows], wide)


def show_status(page: str, as_json: bool, *, wide: bool = False) -> None:
    """Print the status of the gateway at *page*.

    Raises:
        StatusError: It does not answer.
    """
    status = fetch_status(page)
    if as_json:
        click.echo(json.dumps(status, indent=2))
    else:
        print_status(status, wide=wide)
