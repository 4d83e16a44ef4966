"""The page on new surveys, followed word by word in a process that knows nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "user" / "new-survey.md"


def block(language: str) -> str:
    """Return the page's block in *language*; there is one of each."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run *code* with *folder* as the folder of surveys."""
    env = os.environ | {"NIGHTWIRE_SURVEYS": str(folder)}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_the_page_prints_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "little.toml").write_text(block("toml"))
    done = run(tmp_path, block("python"))
    assert done.stdout == block("text"), done.stderr


def test_a_survey_of_ones_own_has_a_topic_and_displaces_ours(tmp_path: Path) -> None:
    (tmp_path / "little.toml").write_text(block("toml"))
    (tmp_path / "ztf.toml").write_text(block("toml").replace("days = 7", "days = 3"))
    asked = "from nightwire.schemas import surveys; from nightwire.schemas.topics import settings\n"
    asked += "print(surveys(), *(settings(f'alerts.{n}').config['retention.ms'] for n in ('little', 'ztf')))"
    names = "['elasticc', 'little', 'lsst', 'sim', 'ztf']"
    assert run(tmp_path, asked).stdout == f"{names} {7 * 86_400_000} {3 * 86_400_000}\n"


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    look = "from nightwire.schemas import survey; survey('little')"
    assert "NIGHTWIRE_SURVEYS" in run(tmp_path / "none", look).stderr
    (tmp_path / "little.toml").write_text(block("toml").replace("time_scale", "time_scales"))
    assert "time_scales" in run(tmp_path, look).stderr
    (tmp_path / "little.toml").write_text("title = ")
    assert "surveys/little.toml" in run(tmp_path, look).stderr
