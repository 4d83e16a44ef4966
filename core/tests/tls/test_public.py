"""What other machines reach: nothing without being asked for, and then by TLS and a password."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from nightwire.core.access import operations
from nightwire.core.cli import main
from nightwire.core.runtime import Endpoints, StateError, find_endpoints
from nightwire.core.stack.kafka.auth import NONE, SCRAM, Doors
from nightwire.core.stack.kafka.public_listener import PublicListener
from nightwire.core.tls import authority
from nightwire.core.tls.keystore import Keystore, key_and_chain
from nightwire.core.tls.public import Public, public_side
from nightwire.core.tls.site import Site, SiteError
from nightwire.schemas.serving import ServerTLS


def test_the_certificate_is_made_for_the_name_that_is_asked_for_and_kept(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert public_side(tmp_path, "a.example.org").host == "a.example.org"
    made = site.server.read_bytes()
    assert public_side(tmp_path).host == "a.example.org"
    assert site.server.read_bytes() == made
    assert public_side(tmp_path, "b.example.org").host == "b.example.org"
    assert {"a.example.org", "b.example.org"} < set(site.hosts())


def test_a_certificate_of_ones_own_is_used_as_it_is(tmp_path: Path) -> None:
    own = Site(tmp_path / "own")
    own.init(["c.example.org"])
    public = public_side(tmp_path / "tls", certificate=own.server)
    assert (public.host, public.certificate, public.key) == ("c.example.org", own.server, own.server)
    assert public.ca is None
    assert public.client_ca == tmp_path / "tls" / "ca.pem"
    assert Public.from_json(json.loads(json.dumps(public.as_json()))) == public


def test_other_machines_never_come_in_without_a_password(tmp_path: Path) -> None:
    public = public_side(tmp_path, "a.example.org")
    kept = {"auth": SCRAM, "public": public.as_json()}
    assert Doors().after({}) == Doors(NONE)
    assert Doors().after(kept) == Doors(SCRAM, public)
    assert Doors(local=True).after(kept) == Doors(SCRAM)
    for auth, asked, before in ((None, public, {}), (NONE, None, kept), (NONE, public, kept)):
        with pytest.raises(StateError, match=r"a\.example\.org would be open to everybody"):
            Doors(auth, asked).after(before)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tls", "a b"), "'a b' is neither the name nor the address of a machine"),
        (("--tls-cert", __file__), "--tls-cert and --tls-key go with --tls"),
        (("--tls", "--tls-cert", __file__), "holds no certificate"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    result = CliRunner().invoke(main, ["up", "--state", str(tmp_path), *words])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert not (tmp_path / "state.json").exists()


def test_who_is_let_in_gets_the_public_address_and_the_authority(tmp_path: Path) -> None:
    Site(tmp_path).init()
    ca = tmp_path / "ca.pem"
    public = {"kafka": "a.example.org:9094", "schema_registry": "https://a.example.org:8443", "ca": str(ca)}
    there = Endpoints("127.0.0.1:9092", "http://127.0.0.1:8081", public=public)
    found = operations.credentials(there, "ann", "secret")
    assert found["KAFKA_BOOTSTRAP_SERVERS"] == "a.example.org:9094"
    assert found["NIGHTWIRE_SCHEMA_REGISTRY"] == "https://a.example.org:8443"
    assert found["KAFKA_SECURITY_PROTOCOL"] == "SASL_SSL"
    assert found["KAFKA_SSL_CA_PEM"] == ca.read_text().strip()


def test_kafkas_file_follows_certificate_and_key_and_is_never_of_two_kinds(tmp_path: Path) -> None:
    site, other = Site(tmp_path / "here"), Site(tmp_path / "other")
    for one in (site, other):
        one.init()
    file = Keystore(tmp_path / "public.pem", site.server, site.server)
    assert file.refresh()
    assert file.path.read_bytes() == site.server.read_bytes()
    assert not file.refresh()
    site.init()
    assert file.refresh()
    assert file.path.read_bytes() == site.server.read_bytes()
    with pytest.raises(SiteError, match="is not that of the certificate"):
        key_and_chain(site.server, other.server)


def test_the_environment_says_what_is_public_where_no_stack_of_ours_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:19092",
        "NIGHTWIRE_PUBLIC_KAFKA": "a.example.org:29092",
        "NIGHTWIRE_PUBLIC_CA": "tls/ca.pem",
        "NIGHTWIRE_PUBLIC_SCHEMA_REGISTRY": "",
    }.items():
        monkeypatch.setenv(name, value)
    assert find_endpoints().public == {"kafka": "a.example.org:29092", "ca": "tls/ca.pem"}


def test_links_that_a_renewal_leads_elsewhere_are_followed(tmp_path: Path) -> None:
    """As in Let's Encrypt's folder ``live``: certificate and key are links of their own."""
    own = Site(tmp_path / "own")
    for number in (1, 2):
        own.init(["c.example.org"])
        key, _, certificate = own.server.read_text().partition("-----BEGIN CERT")
        (tmp_path / f"privkey{number}.pem").write_text(key)
        (tmp_path / f"fullchain{number}.pem").write_text(f"-----BEGIN CERT{certificate}")
    for name in ("privkey", "fullchain"):
        (tmp_path / f"{name}.pem").symlink_to(f"{name}1.pem")
    public = public_side(tmp_path / "tls", "", tmp_path / "fullchain.pem", tmp_path / "privkey.pem")
    file, server = (
        Keystore(tmp_path / "kafka.pem", public.certificate, public.key),
        ServerTLS(public.certificate, public.key),
    )
    assert file.refresh()
    before, shown = file.path.read_bytes(), server.context()
    for name in ("privkey", "fullchain"):
        (tmp_path / f"{name}.pem").unlink()
        (tmp_path / f"{name}.pem").symlink_to(f"{name}2.pem")
    assert file.refresh()
    assert file.path.read_bytes() == own.server.read_bytes() != before
    assert server.context() is not shown


def test_a_certificate_that_ends_soon_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = "the certificate for other machines ends in 19 days: renew it"
    for days in (397, 20):
        monkeypatch.setattr(authority, "LIFE", timedelta(days=days))
        Site(tmp_path / "tls").init()
        listener = PublicListener(public_side(tmp_path / "tls"), tmp_path, 9094)
        listener.listener()
        for _ in range(3):
            assert not listener.follow(AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}))
        assert caplog.messages.count(said) == (days == 20)
