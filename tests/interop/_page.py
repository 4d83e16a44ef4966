"""The code of the page on other people's clients, run as its readers run it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nightwire.core.runtime import clean_environment

PAGE = Path(__file__).parents[2] / "docs" / "user" / "interoperability.md"
COMMANDS = {"python": [sys.executable, "-c"], "sh": ["sh", "-euc"]}


def blocks(client: str, language: str) -> list[str]:
    """Return the blocks of *language* in the page's section on *client*."""
    sections = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    text = dict(zip(sections[1::2], sections[2::2], strict=True))[client]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run(language: str, code: str, where: Mapping[str, str], folder: Path) -> str:
    """Return what *code* prints; see `start`."""
    return start([*COMMANDS[language], code], where, folder)


def nightwire(words: str, where: Mapping[str, str], folder: Path) -> str:
    """Return what ``nightwire`` prints, called with *words*; see `start`."""
    return start([sys.executable, "-m", "nightwire.core.cli", *words.split()], where, folder)


def start(command: list[str], where: Mapping[str, str], folder: Path) -> str:
    """Return what *command* prints, run in *folder*, in an environment that knows of no Kafka
    but *where*.
    """
    env = clean_environment(os.environ) | {"HOME": str(folder)} | where
    done = subprocess.run(command, capture_output=True, cwd=folder, env=env, timeout=100)  # noqa: PLW1510
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
    return done.stdout.decode(errors="replace")


def rubin_schema(number: int) -> Any:
    """Return what Rubin's package knows under a schema's id."""
    from lsst.alert.packet import SchemaRegistry

    return SchemaRegistry.all_schemas_from_filesystem().get_by_id(number)


def write_as_rubin(alerts: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Have Rubin's package write *alerts* to a file."""
    with path.open("wb") as out:
        rubin_schema(1100).store_alerts(out, list(alerts))


def line(alert: Mapping[str, Any]) -> str:
    """Return what the page's examples print of an alert."""
    return f"{alert['diaSource']['diaSourceId']} {alert['diaSource']['psfFlux']}"
