"""What ought not to be, and is: each is said, and neither stops the archive nor harms it."""

from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from archive.tests.conftest import NOON, message, put, record, writer
from nightwire.archive import Archive, QuestionError
from nightwire.archive.storage import record_of


def test_no_plan_of_a_question_writes_a_file(archived: Archive) -> None:
    path = Path(archived.place.url) / "sim" / "written.csv"
    for words in ("EXPLAIN ANALYZE", "EXPLAIN (ANALYZE)", "explain /* */ analyze", "EXPLAIN"):
        with pytest.raises(QuestionError, match="nothing is written here"):
            archived.query(f"{words} COPY (SELECT 1) TO '{path}'")
    assert not path.exists()


def test_a_detection_without_a_time_is_no_point_of_a_light_curve(tmp_path: Path) -> None:
    put(writer(tmp_path), record(2), record(3, message(4, midpointMjdTai=float("nan"))), record(4))
    with Archive(tmp_path) as found:
        assert len(found.object(10**6 + 1)) == 3
        assert found.light_curve(10**6 + 1).column("mjd_tai").to_pylist() == pytest.approx(
            [61000.6003, 61000.6005]
        )


def test_a_time_that_no_calendar_has_does_not_stop_the_archive(tmp_path: Path) -> None:
    said = Message("alerts.sim", 0, 0, b"k0", message(1), [], None, (TIMESTAMP_CREATE_TIME, NOON * 1000))
    put(writer(tmp_path), record_of(said), record(1))
    with Archive(tmp_path) as found:
        (row,) = found.query("SELECT timestamp FROM sim WHERE id = '1'").to_pylist()
        assert row["timestamp"].isoformat() == "9999-12-31T00:00:00+00:00"
        assert found.whole(1) == [record_of(said)]
        assert found.of("sim").first_since(0, NOON + 1) == 0
        assert found.of("sim").first_since(0, NOON * 10**4) is None
