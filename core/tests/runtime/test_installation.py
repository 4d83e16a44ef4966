"""Remedies that work: from the clone where nightwire came from one, and for all that is missing."""

import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from nightwire.core.runtime import install_command, installation, missing_packages
from nightwire.core.stack.supervisor import Plan
from nightwire.core.stack.up import NotInstalledError, check_installed


def installed_from(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    one = SimpleNamespace(read_text=lambda _name: None if origin is None else json.dumps(origin))
    monkeypatch.setattr(installation, "distribution", lambda _name: one)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'nightwire[tables]'"),
        ({"url": "file:///home/me/my%20clone", "dir_info": {}}, "pip install '/home/me/my clone[tables]'"),
        ({"url": "file:///c", "dir_info": {"editable": True}}, "pip install -e '/c[tables]'"),
        ({"url": "https://an.index/nightwire.whl", "archive_info": {}}, "pip install 'nightwire[tables]'"),
    ],
)
def test_more_is_installed_from_where_we_came_from(
    monkeypatch: pytest.MonkeyPatch, origin: object, command: str
) -> None:
    installed_from(monkeypatch, origin)
    assert install_command("tables") == command


def test_up_names_what_a_light_install_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed(Plan(Path()))
    real = installation.distribution

    def light(name: str) -> object:
        if name in ("pyspark", "lxml", "uvicorn"):
            raise PackageNotFoundError(name)
        return real(name)

    installation._installed.cache_clear()
    monkeypatch.setattr(installation, "distribution", light)
    try:
        assert missing_packages("stack") == ["uvicorn"]  # of the extra that `stack` names
        with pytest.raises(NotInstalledError, match=r"lxml, pyspark, uvicorn.*pip install.*stack,gateway"):
            check_installed(Plan(Path()))
    finally:
        installation._installed.cache_clear()
