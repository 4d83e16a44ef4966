"""What is read of GCN, and how far: decisions alone."""

import pytest

from nightwire.core.accounting.accounts import Account, discrepancies
from nightwire.gateway.cli.serve_options import gcn_properties
from nightwire.gateway.ingest import gcn as _gcn
from nightwire.gateway.ingest.gcn import DEAD, DELIVERED, DUPLICATE, EXPIRED, GcnOffsets, source_name, wanted

PARTITION = (source_name("abc", "gcn.classic.voevent.SWIFT"), 0)
CLASSIC = "gcn.classic.voevent.*"


def test_patterns_take_the_topics_that_hold_voevents() -> None:
    there = ["gcn.classic.voevent.SWIFT", "gcn.classic.text.SWIFT", "gcn.notices.svom.voevent.grm"]
    assert wanted(there, [CLASSIC]) == {there[0]}
    assert wanted(there, [CLASSIC, "gcn.notices.svom.voevent.*"]) == {there[0], there[2]}


def test_ranges_join_and_add_up_from_run_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gcn, "RANGE", 3)
    kept: dict[tuple[str, str, int, int], Account] = {}
    ledger = GcnOffsets()
    ledger.begin(PARTITION, 40)
    for last in (40, 41, 45, 46, 47):  # 42 to 44 are holes
        ledger.note(PARTITION, last, DELIVERED if last % 2 else DEAD)
        kept |= {one.key: one for one in ledger.changed()}
    ledger = GcnOffsets(kept.values())
    assert ledger.position(PARTITION) == 48
    ledger.note(PARTITION, 48, DUPLICATE)
    ledger.note(PARTITION, 59, EXPIRED, 11)
    kept |= {one.key: one for one in ledger.changed()}
    assert [(one.first, one.last, one.read) for one in kept.values()] == [
        (40, 45, 3),
        (46, 47, 2),
        (48, 59, 12),
    ]
    assert discrepancies(kept.values()) == []
    assert list(kept.values())[-1].rejected == {DUPLICATE: 1, EXPIRED: 11}


def test_that_reading_began_is_known_before_the_first_record() -> None:
    ledger = GcnOffsets()
    ledger.begin(PARTITION, 7)
    (began,) = ledger.changed()
    assert GcnOffsets([began]).position(PARTITION) == 7
    assert ledger.changed() == []


def test_a_topic_of_a_pattern_in_use_is_new_at_gcn_and_one_of_a_new_pattern_is_not() -> None:
    ledger = GcnOffsets()
    assert not ledger.follows("gcn.classic.voevent.SWIFT", [CLASSIC])
    ledger.begin(PARTITION, 7)
    assert ledger.follows("gcn.classic.voevent.FERMI", [CLASSIC])
    assert not ledger.follows("gcn.notices.svom.voevent.grm", [CLASSIC, "gcn.notices.svom.voevent.*"])


def test_a_cluster_that_was_made_anew_is_read_from_its_beginning() -> None:
    ledger = GcnOffsets()
    ledger.begin(PARTITION, 7)
    assert ledger.position((source_name("other", "gcn.classic.voevent.SWIFT"), 0)) is None
    assert ledger.follows("gcn.classic.voevent.SWIFT", [CLASSIC])


def test_credentials_come_from_the_environment_and_missing_ones_are_named() -> None:
    with pytest.raises(ValueError, match="set NIGHTWIRE_GCN_CLIENT_ID and NIGHTWIRE_GCN_CLIENT_SECRET in"):
        gcn_properties({})
    with pytest.raises(ValueError, match="set NIGHTWIRE_GCN_CLIENT_SECRET in"):
        gcn_properties({"NIGHTWIRE_GCN_CLIENT_ID": "me"})
    found = gcn_properties({"NIGHTWIRE_GCN_CLIENT_ID": "me", "NIGHTWIRE_GCN_CLIENT_SECRET": "mine"})
    assert found["sasl.oauthbearer.client.secret"] == "mine"
    assert found["security.protocol"] == "SASL_SSL"
    assert (
        gcn_properties({"NIGHTWIRE_GCN_KAFKA_SECURITY_PROTOCOL": "PLAINTEXT"})["security.protocol"]
        == "PLAINTEXT"
    )
