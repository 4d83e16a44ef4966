"""The pictures of dashboards: Grafana's components draw what a real Prometheus answers."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from monitoring.tests.processes import await_answer, running
from nightwire.core.stack import free_port

DRAW = Path(__file__).parents[2] / "pictures" / "draw.py"
RED = (242, 73, 92)
"""Grafana's, in its dark theme."""


def colours(path: Path) -> set[tuple[int, ...]]:
    with Image.open(path) as picture:
        found = picture.convert("RGB").getcolors(picture.width * picture.height)
    return {colour for count, colour in found or [] if count > 20 and isinstance(colour, tuple)}


@pytest.mark.prometheus
@pytest.mark.chromium
@pytest.mark.pictures
def test_a_dashboard_is_drawn_with_what_prometheus_says(tmp_path: Path) -> None:
    port, nobody = free_port(), free_port()
    watched = f"--target=gateway=127.0.0.1:{nobody}"  # one that is down: *the night* shows it red
    with running("prometheus", "--state", str(tmp_path / "state"), "--port", str(port), watched):
        await_answer(port, "up == 0")
        where = f"--prometheus=http://127.0.0.1:{port}"
        command = [sys.executable, str(DRAW), where, "--minutes=1", f"--out={tmp_path}", "night", "gateway"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    night, gateway = said.splitlines()
    assert "without data" in night
    assert "Remote brokers" in gateway
    assert RED in colours(tmp_path / "night.png")
    assert RED not in colours(tmp_path / "gateway.png")
