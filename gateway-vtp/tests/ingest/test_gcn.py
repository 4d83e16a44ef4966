"""What is read of GCN, and how far: decisions alone."""

import pytest

from nightwire.core.accounting import Account, OffsetAccounts, discrepancies
from nightwire.gateway.cli.serve_options import gcn_properties
from nightwire.gateway.ingest.gcn import (
    DEAD_LETTERED,
    DELIVERED,
    DUPLICATE,
    EXPIRED,
    STAGE,
    count_outcome,
    is_new_topic,
    source_name,
    wanted,
)

PARTITION = (source_name("abc", "gcn.classic.voevent.SWIFT"), 0)
CLASSIC = "gcn.classic.voevent.*"


def test_patterns_take_the_topics_that_hold_voevents() -> None:
    there = ["gcn.classic.voevent.SWIFT", "gcn.classic.text.SWIFT", "gcn.notices.svom.voevent.grm"]
    assert wanted(there, [CLASSIC]) == {there[0]}
    assert wanted(there, [CLASSIC, "gcn.notices.svom.voevent.*"]) == {there[0], there[2]}


def test_outcomes_add_up_from_run_to_run() -> None:
    kept: dict[tuple[str, str, int, int], Account] = {}
    accounts = OffsetAccounts(STAGE)
    accounts.begin(PARTITION, 40)
    for last in (40, 41, 45, 46, 47):  # 42 to 44 are holes
        count_outcome(accounts, PARTITION, last, DELIVERED if last % 2 else DEAD_LETTERED)
        kept |= {one.key: one for one in accounts.changed()}
    accounts = OffsetAccounts(STAGE, kept.values())
    assert accounts.position(PARTITION) == 48
    count_outcome(accounts, PARTITION, 48, DUPLICATE)
    count_outcome(accounts, PARTITION, 59, EXPIRED, 11)
    kept |= {one.key: one for one in accounts.changed()}
    assert [(one.first, one.last, one.read) for one in kept.values()] == [(40, 47, 5), (48, 59, 12)]
    assert discrepancies(kept.values()) == []
    assert list(kept.values())[-1].rejected == {DUPLICATE: 1, EXPIRED: 11}


def test_a_topic_of_a_pattern_in_use_is_new_at_gcn_and_one_of_a_new_pattern_is_not() -> None:
    assert not is_new_topic("gcn.classic.voevent.SWIFT", [CLASSIC], [])
    assert is_new_topic("gcn.classic.voevent.FERMI", [CLASSIC], [PARTITION])
    other = [CLASSIC, "gcn.notices.svom.voevent.*"]
    assert not is_new_topic("gcn.notices.svom.voevent.grm", other, [PARTITION])


def test_a_cluster_that_was_made_anew_is_read_from_its_beginning() -> None:
    accounts = OffsetAccounts(STAGE)
    accounts.begin(PARTITION, 7)
    assert accounts.position((source_name("other", "gcn.classic.voevent.SWIFT"), 0)) is None
    assert is_new_topic("gcn.classic.voevent.SWIFT", [CLASSIC], accounts.sources)


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
