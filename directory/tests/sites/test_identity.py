"""Who a Kafka says it is, and which claims are refused; no Kafka takes part."""

from typing import Any

import pytest

from nightwire.core.presence import entry
from nightwire.directory.sites import (
    ClusterIdentity,
    SiteAddress,
    SiteAddressError,
    SiteRefusedError,
    check_claim,
)
from nightwire.schemas.records import ENTRY


def note(found: ClusterIdentity, name: str, appended: int, *, key: str = "", **more: Any) -> None:
    said = entry("site", name, endpoints={"kafka": f"{name}:9092"}, **more) | {"site": name}
    found.add_record(key or f"{name}/site/{name}", ENTRY.encode(said), appended)


def test_a_site_is_called_what_its_own_entry_says() -> None:
    found = ClusterIdentity("X")
    note(found, "far", 1_000)
    note(found, "other", 2_000, key="far/site/other")
    found.add_record("far/process/far", b"", 2_000)
    assert found.resolve_name() == "far"
    assert found.endpoint("far", "kafka") == "far:9092"
    assert found.endpoint("far", "nothing") == ""


def test_of_several_names_the_one_counts_that_is_alive() -> None:
    found = ClusterIdentity("X")
    note(found, "old", 1_000)
    note(found, "left", 60_000, ended=True)
    note(found, "far", 61_000)
    assert found.resolve_name() == "far"
    assert found.resolve_name("old") == "old", "whoever was bound to it stays, be his directory down"


def test_a_name_is_not_taken_where_two_are_alive_unless_it_is_expected() -> None:
    found = ClusterIdentity("X")
    note(found, "far", 1_000)
    note(found, "forged", 2_000)
    with pytest.raises(SiteRefusedError, match="'far', 'forged'"):
        found.resolve_name()
    assert found.resolve_name("far") == "far"
    with pytest.raises(SiteRefusedError, match="not 'near'"):
        found.resolve_name("near")


def test_a_name_is_forgotten_with_its_entry_and_noise_is_none() -> None:
    found = ClusterIdentity("X")
    note(found, "far", 1_000)
    found.add_record("far/site/far", None, 2_000)
    found.add_record("noise/site/noise", b"no record", 2_000)
    note(found, "another", 2_000, key="noise/site/noise")
    assert found.claims == {}


def test_names_of_one_kafka_are_bounded() -> None:
    found = ClusterIdentity("X")
    for number in range(150):
        note(found, f"far-{number}", 1_000)
    assert len(found.claims) == 100


BOUND = {"home": "H", "far": "F"}


@pytest.mark.parametrize(("name", "cluster"), [("far", "F"), ("new", "N")])
def test_a_claim_can_be_the_one_that_was_first(name: str, cluster: str) -> None:
    check_claim(name, cluster, BOUND)


@pytest.mark.parametrize(("name", "cluster"), [("home", "F"), ("home", "N"), ("far", "N"), ("new", "F")])
def test_neither_a_name_nor_a_kafka_belongs_to_two(name: str, cluster: str) -> None:
    with pytest.raises(SiteRefusedError, match=name):
        check_claim(name, cluster, BOUND)


def test_rights_come_from_the_environment_and_are_shown_to_nobody() -> None:
    env = {
        "NIGHTWIRE_SITE_FAR_AWAY_KAFKA_SASL_PASSWORD": "secret",
        "KAFKA_SASL_PASSWORD": "our own",
        "NIGHTWIRE_SITE_OTHER_KAFKA_SASL_PASSWORD": "another's",
    }
    where = SiteAddress.parse("far-away=far.example:9092,[::1]:9093", env)
    assert (where.name, where.address) == ("far-away", "far.example:9092,[::1]:9093")
    assert where.credentials == {"sasl.password": "secret"}
    assert "secret" not in repr(where)
    assert SiteAddress.parse("far.example:9092", env).credentials == {}


@pytest.mark.parametrize(
    "text",
    ["far", "far=", "=far:1", "far:", "a b:1", "http://far:1", "far:1,", "x" * 1001 + ":1", "far:123456"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(SiteAddressError, match="HOST:PORT"):
        SiteAddress.parse(text, {})
