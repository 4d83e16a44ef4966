"""An archive in a bucket: a real server that speaks S3 (moto's), commits by conditional puts."""

import shutil
import subprocess
import time
from collections.abc import Iterator

import httpx
import pytest
from pyarrow.fs import S3FileSystem

from archive.tests.conftest import Known, put, record
from nightwire.archive import Archive, ArchiveError
from nightwire.archive.storage import FencedError, Place, record_rows
from nightwire.archive.upkeep import Retention, keep_up
from nightwire.archive.writing import SurveyWriter
from nightwire.core.runtime import free_port

pytestmark = [pytest.mark.s3, pytest.mark.slow]
URL = "s3://night-archive/here"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Yield a place in an empty bucket."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    found = {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    for name, value in (found | {"AWS_REGION": "us-east-1"}).items():
        monkeypatch.setenv(name, value)
    words = [shutil.which("moto_server") or "", "-H", "127.0.0.1", "-p", str(port)]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await_server(address)
        S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True
        ).create_dir("night-archive")
        yield Place(URL)
    finally:
        child.kill()
        child.wait(30)


def await_server(address: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{address}/moto-api/")
        except httpx.HTTPError:
            time.sleep(0.1)  # polling, not hoping
        else:
            return
    raise AssertionError("moto does not answer")


def test_a_bucket_holds_what_a_folder_holds(bucket: Place) -> None:
    tables, other = SurveyWriter(bucket, "sim", Known()), SurveyWriter(bucket, "sim", Known())
    put(tables, *(record(n) for n in range(50)))
    tables.packets.append(record_rows([record(50), record(51)]), {("alerts.sim", 0): (50, 52)})
    with pytest.raises(FencedError):
        other.write([record(50)], {("alerts.sim", 0): 50})
    assert SurveyWriter(bucket, "sim", Known()).position(0) == 52  # the others are caught up
    with Archive(URL) as found:
        assert found.surveys == ["sim"]
        assert found.query("SELECT count(*) AS n FROM sim").to_pylist() == [{"n": 52}]
        assert len(found.cone(10.1, -20.25, 0.02)) == 5
        (whole,) = found.whole(52)
        assert (whole, found.decode(whole).alert["diaSourceId"]) == (record(51), 52)
        with pytest.raises(ArchiveError, match="disabled"):
            found.query("SELECT * FROM read_text('/etc/passwd')")
    keep_up(bucket, Retention(), least=2)
    with Archive(URL) as found:
        assert found.query("SELECT count(*) AS n FROM sim").to_pylist() == [{"n": 52}]
        assert len(found.get(7)) == 1
