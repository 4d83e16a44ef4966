"""Logs of the embedded stack."""

import sys
import time
from pathlib import Path

import click


def show(folder: Path, name: str | None, *, lines: int, follow: bool) -> int:
    """Print the last *lines* of the logs in *folder*, and go on where *follow*; return the exit status."""
    found = sorted(folder.glob(f"{name or '*'}.log"))
    if not found:
        names = ", ".join(sorted(path.stem for path in folder.glob("*.log"))) or "none"
        click.echo(f"no log called {name} in {folder}; there are: {names}", err=True)
        return 1
    places = {path: _print_tail(path, lines, prefix=len(found) > 1) for path in found}
    try:
        while follow:
            places = {path: _print_from(path, at, prefix=len(found) > 1) for path, at in places.items()}
            sys.stdout.flush()
            time.sleep(0.3)
    except KeyboardInterrupt:
        pass
    return 0


def _print_tail(path: Path, lines: int, *, prefix: bool) -> int:
    text = path.read_text(errors="replace")
    _print(path, text.splitlines()[-lines:] if lines else [], prefix=prefix)
    return path.stat().st_size


def _print_from(path: Path, at: int, *, prefix: bool) -> int:
    size = path.stat().st_size
    with path.open("rb") as log:
        log.seek(at if size >= at else 0)  # a log that was set aside begins anew
        fresh = log.read()
    _print(path, fresh.decode(errors="replace").splitlines(), prefix=prefix)
    return at + len(fresh) if size >= at else len(fresh)


def _print(path: Path, lines: list[str], *, prefix: bool) -> None:
    for line in lines:
        click.echo(f"{path.stem:<15} {line}" if prefix else line)
