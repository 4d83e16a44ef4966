"""What ought not to be, and is: each is said, and neither stops the archive nor harms it."""

from pathlib import Path

import pytest

from nightwire.archive import Archive, QuestionError


def test_no_plan_of_a_question_writes_a_file(archived: Archive) -> None:
    path = Path(archived.place.url) / "sim" / "written.csv"
    for words in ("EXPLAIN ANALYZE", "EXPLAIN (ANALYZE)", "explain /* */ analyze", "EXPLAIN"):
        with pytest.raises(QuestionError, match="nothing is written here"):
            archived.query(f"{words} COPY (SELECT 1) TO '{path}'")
    assert not path.exists()
