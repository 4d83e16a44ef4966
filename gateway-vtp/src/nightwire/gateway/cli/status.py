"""The verb ``nightwire gateway status``: who is connected, what came, who was refused."""

import json
from typing import Any

import click
import httpx
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nightwire.gateway.status.tables import TABLES, Status, cells


class StatusError(Exception):
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


def print_status(status: Status) -> None:
    """Print *status* as tables."""
    console = Console()
    console.print(f"[bold]{status['gateway']}[/bold] at {status['now']}, up since {status['started']}")
    for one in status["listening"]:
        console.print(f"  {one['role']} {one['address']}", highlight=False)
    for table in TABLES:
        rows = cells(table, status)
        console.print(f"\n[bold]{table.title}[/bold]" + ("" if rows else f": {table.nothing}"))
        if rows:
            console.print(_drawn(table, rows))


def _drawn(table: Any, rows: list[list[str]]) -> Table:
    drawn = Table(box=None, pad_edge=False, header_style="dim")
    for column in table.columns:
        drawn.add_column(column.title, justify="right" if column.number else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(escape(click.unstyle(text)) for text in row))
    return drawn


def show_status(page: str, as_json: bool) -> None:
    """Print the status of the gateway at *page*.

    Raises:
        click.ClickException: It does not answer.
    """
    try:
        status = fetch_status(page)
    except StatusError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(status, indent=2))
    else:
        print_status(status)
