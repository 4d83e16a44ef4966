"""An archive in a bucket: a real server that speaks S3 (moto's), commits by conditional puts."""

import pytest

from archive.tests.conftest import URL, Known, packet, put
from archive.tests.test_http_api import answering
from nightwire.archive import Archive, ArchiveError
from nightwire.archive.maintenance import Maintenance, Retention
from nightwire.archive.storage import FencedError, Store
from nightwire.archive.writing import SurveyWriter
from nightwire.core.runtime import free_port
from nightwire.schemas.serving import KafkaAccess

pytestmark = [pytest.mark.s3, pytest.mark.slow]


def test_a_store_that_is_away_is_not_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads on in the archive waits, and does not pass over what lies there."""
    away = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}", "AWS_REGION": "us-east-1"}
    for name, value in (away | {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}).items():
        monkeypatch.setenv(name, value)
    with Archive(URL) as found, answering(found, KafkaAccess({})) as http:
        assert http.get("/sim/records/0").status_code == 503


def test_a_bucket_holds_what_a_folder_holds(bucket: Store) -> None:
    tables, other = SurveyWriter(bucket, "sim", Known()), SurveyWriter(bucket, "sim", Known())
    put(tables, *(packet(n) for n in range(50)))
    tables.packets.append_packets([packet(50), packet(51)], {("alerts.sim", 0): (50, 52)})
    with pytest.raises(FencedError):
        other.write([packet(50)], {("alerts.sim", 0): 50})
    assert SurveyWriter(bucket, "sim", Known()).position(0) == 52  # the others are caught up
    with Archive(URL) as found:
        assert found.surveys == ["sim"]
        assert found.query("SELECT count(*) AS n FROM sim").to_pylist() == [{"n": 52}]
        assert len(found.cone(10.1, -20.25, 0.02)) == 5
        (whole,) = found.packets(52)
        assert (whole, found.decode(whole).alert["diaSourceId"]) == (packet(51), 52)
        with pytest.raises(ArchiveError, match="disabled"):
            found.query("SELECT * FROM read_text('/etc/passwd')")
    Maintenance(bucket, Retention()).run(min_files=2)
    with Archive(URL) as found:
        assert found.query("SELECT count(*) AS n FROM sim").to_pylist() == [{"n": 52}]
        assert len(found.get(7)) == 1
