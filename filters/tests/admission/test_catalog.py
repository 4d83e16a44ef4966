"""What the catalog takes: no record that Kafka would refuse, no owner who fills the workers."""

from typing import Any

import pytest

from nightwire.filters.admission.catalog import MAX_OWNED, MAX_RECORD, check_sizes
from nightwire.filters.language import FilterError
from nightwire.filters.model.filter_set import FilterSet
from nightwire.schemas import records


def record(owner: str, name: str, size: int) -> dict[str, Any]:
    """Return a filter's record with a source of *size* characters."""
    about = {"owner": owner, "name": name, "version": 1, "live": True, "submitted": 1}
    text = {"survey": "sim", "language": "python", "source": size * "x"}
    return records.FILTER.decode(records.FILTER.encode(about | text))


def test_a_record_that_kafka_would_refuse_is_refused_first() -> None:
    check_sizes(FilterSet(), record("me", "small", MAX_RECORD - 1000))
    with pytest.raises(FilterError, match="fewer constants"):
        check_sizes(FilterSet(), record("me", "large", MAX_RECORD))


def test_one_owners_live_filters_have_a_size_together() -> None:
    known, part = FilterSet(), MAX_OWNED // 5
    for name in "abcd":
        known.versions["me", name, 1] = known.pointers["me", name] = record("me", name, part)
    check_sizes(known, record("me", "a", part))  # in its own place
    check_sizes(known, record("you", "e", part))
    with pytest.raises(FilterError, match="me's live filters would have"):
        check_sizes(known, record("me", "e", part + 1))
    known.pointers["me", "d"] = {**known.pointers["me", "d"], "live": False}
    check_sizes(known, record("me", "e", part + 1))
