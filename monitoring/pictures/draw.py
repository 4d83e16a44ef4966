"""Draw the dashboards as PNG: Grafana's components in Chromium, with Prometheus' answers.

Example:
    npm ci --prefix monitoring/pictures && npm run build --prefix monitoring/pictures
    .venv/bin/python monitoring/pictures/draw.py --prometheus http://127.0.0.1:9090 --minutes 10
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import httpx

HERE = Path(__file__).parent
BUNDLE = HERE / "build" / "page.js"
DASHBOARDS = HERE.parent / "grafana" / "dashboards"
WIDTH = 1600
"""Of a picture. [px]"""
GRID, GAP, HEAD = 30, 8, 48
"""A line of Grafana's grid, the space between two, and the title above them. [px]"""
POINTS = 240
"""Of a line in a picture."""
PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="{bundle}.css">
<body style="margin: 0; overflow: hidden"><div id="dashboard"></div>
<script>window.drawing = {drawing}</script><script src="{bundle}.js"></script>"""


@click.command(context_settings={"show_default": True})
@click.option("--prometheus", "address", default="http://127.0.0.1:9090", help="Where Prometheus is.")
@click.option("--minutes", type=click.FloatRange(min=0.5), default=15.0, help="How far back to look. [min]")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("pictures"))
@click.argument("names", nargs=-1)
def draw(address: str, minutes: float, out: Path, names: tuple[str, ...]) -> None:
    """Draw the dashboards NAMES, or all; say which panels have no data."""
    if not BUNDLE.exists():
        raise click.ClickException(f"{BUNDLE} is missing: npm ci and npm run build in {HERE}")
    out.mkdir(parents=True, exist_ok=True)
    now = time.time()
    with httpx.Client(base_url=address, timeout=30.0) as client:
        for path in chosen(names):
            try:
                drawing = asked(client, json.loads(path.read_text()), now - 60 * minutes, now)
            except httpx.HTTPError as error:
                advice = "`nightwire up --jmx` starts one, and says where"
                raise click.ClickException(
                    f"Prometheus at {address} does not answer ({error}): {advice}"
                ) from None
            shot(drawing, out / f"{path.stem}.png")
            click.echo(f"{out / path.stem}.png{without_data(drawing)}")


def chosen(names: tuple[str, ...]) -> Iterator[Path]:
    """Yield the dashboards' files, by their names without suffix."""
    for name in names or sorted(path.stem for path in DASHBOARDS.glob("*.json")):
        path = DASHBOARDS / f"{name}.json"
        if not path.exists():
            raise click.BadParameter(f"there is no dashboard {name!r} in {DASHBOARDS}")
        yield path


def asked(client: httpx.Client, dashboard: dict[str, Any], first: float, last: float) -> dict[str, Any]:
    """Return what the page wants: the dashboard, and Prometheus' answers to its queries."""
    step = (last - first) / POINTS
    span = {"start": first, "end": last, "step": step}
    answers = [
        [answer(client, target, span) for target in panel.get("targets", [])] for panel in dashboard["panels"]
    ]
    return {
        "dashboard": dashboard,
        "answers": answers,
        "from": first,
        "to": last,
        "step": step,
        "grid": {"width": WIDTH, "height": GRID, "gap": GAP, "head": HEAD},
    }


def answer(client: httpx.Client, target: dict[str, Any], span: dict[str, float]) -> list[dict[str, Any]]:
    """Return the series that answer *target*: at one time for a table, else over *span*."""
    if target.get("instant"):
        said = client.get("/api/v1/query", params={"query": target["expr"], "time": span["end"]})
    else:
        said = client.get("/api/v1/query_range", params={"query": target["expr"], **span})
    found: list[dict[str, Any]] = said.raise_for_status().json()["data"]["result"]
    return found


def without_data(drawing: dict[str, Any]) -> str:
    """Return the titles of panels without data, in words."""
    pairs = zip(drawing["dashboard"]["panels"], drawing["answers"], strict=True)
    empty = [panel["title"] for panel, answers in pairs if panel.get("targets") and not any(answers)]
    return f"  without data: {', '.join(empty)}" if empty else ""


def height_of(dashboard: dict[str, Any]) -> int:
    """Return how high the page is. [px]"""
    lines = max(place["y"] + place["h"] for panel in dashboard["panels"] for place in [panel["gridPos"]])
    return HEAD + int(lines) * (GRID + GAP)


def shot(drawing: dict[str, Any], path: Path) -> None:
    """Let Chromium draw *drawing* into *path*."""
    with tempfile.TemporaryDirectory(prefix="nightwire-pictures-") as folder:
        page = Path(folder) / "page.html"
        data = json.dumps(drawing).replace("<", "\\u003c")
        page.write_text(PAGE.format(drawing=data, bundle=BUNDLE.resolve().with_suffix("").as_uri()))
        size = f"{WIDTH},{height_of(drawing['dashboard'])}"
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--allow-file-access-from-files", f"--user-data-dir={folder}/profile", f"--window-size={size}",
             "--virtual-time-budget=8000", f"--screenshot={path.resolve()}", page.as_uri()],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip


if __name__ == "__main__":
    draw()
