"""The gateway's state folder: whose it is, and of which version."""

from pathlib import Path

import pytest

from nightwire.core.runtime import StateError
from nightwire.gateway.eventlog.state_folder import VERSION, claim_state


def test_a_folder_is_one_gateways_at_a_time(tmp_path: Path) -> None:
    claim = claim_state(tmp_path / "state")
    with pytest.raises(StateError, match="in use by another gateway"):
        claim_state(tmp_path / "state")
    claim.close()
    claim_state(tmp_path / "state").close()


def test_what_the_first_version_left_goes_and_the_rest_stays(tmp_path: Path) -> None:
    for name in ("events.sqlite", "events.sqlite-wal", "names.sqlite", "handlers.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "events.hashes").mkdir()
    claim_state(tmp_path).close()
    assert {path.name for path in tmp_path.iterdir()} == {"handlers.json", "lock", "version"}
    (tmp_path / "events").mkdir()
    claim_state(tmp_path).close()
    assert (tmp_path / "events").exists()


@pytest.mark.parametrize("found", [f"{VERSION + 1}\n", "later"])
def test_what_this_version_cannot_read_is_refused_by_name_and_kept(tmp_path: Path, found: str) -> None:
    (tmp_path / "version").write_text(found)
    with pytest.raises(StateError, match=str(tmp_path)):
        claim_state(tmp_path)
    assert (tmp_path / "version").read_text() == found
