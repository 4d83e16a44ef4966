"""Signatures: both layouts, who may sign for whom, expired keys, files that change."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pysequoia import SignatureMode, Tsk, sign

from nightwire.gateway.signing import trust as _trust
from nightwire.gateway.signing.bundled_signatures import MAX_SIGNATURES, bundle, bundled_signatures
from nightwire.gateway.signing.keyring import Keyring, KeyringError, read_keys
from nightwire.gateway.signing.signing_key import SigningError, SigningKey
from nightwire.gateway.signing.trust import Trust, TrustFiles
from nightwire.gateway.signing.trust_policy import Grant, Policy, PolicyError, Signer, read_policy
from nightwire.gateway.signing.verification import Finding, check_signature
from nightwire.gateway.voevent.packet import Packet, element_bytes
from nightwire.gateway.voevent.validation import broker_packet
from nightwire.gateway.vtp.session import encode_now
from nightwire.gateway.vtp.transport import Transport
from tests._voevents import packet

AUTHOR = "ivo://test"  # of conftest's packets
MONTH = timedelta(days=30)


def make_key(name: str = AUTHOR, validity: timedelta | None = None) -> Tsk:
    seconds = None if validity is None else int(validity.total_seconds())
    return Tsk.generate(user_id=name, validity_seconds=seconds)


@pytest.fixture(scope="module")
def key() -> Tsk:
    return make_key()


def armor_of(key: Tsk, signed: bytes) -> bytes:
    return sign(key.signer(), signed, mode=SignatureMode.DETACHED)


def signed_by(key: Tsk, document: bytes) -> bytes:
    return bundle(document, armor_of(key, element_bytes(document)))


def signed_as_comet_does(key: Tsk, document: bytes) -> bytes:
    """The layout of Comet's unreleased code: its escaping, and what it signs."""
    declaration = document[: document.index(b"?>") + 2]
    armor = armor_of(key, declaration + element_bytes(document))
    assert b"\n\n" in armor  # a header, as GnuPG 1 wrote it, is put before the empty line
    armor = armor.replace(b"\n\n", b"\nVersion: GnuPG v1.4-0^1\n\n", 1)
    return b"%s<!--\n%s\n-->" % (document, armor.replace(b"^", b"\\^").replace(b"-", b"^"))


def check(
    document: bytes, *keys: Tsk, now: datetime | None = None, max_age: timedelta = MONTH
) -> list[Finding]:
    keyring = Keyring([one.extract_certificate() for one in keys])
    now = now or datetime.now(UTC)
    return [
        check_signature(one.signed, one.armor, keyring, now, max_age).finding
        for one in bundled_signatures(document)
    ]


@pytest.mark.parametrize("sign_it", [signed_by, signed_as_comet_does])
@pytest.mark.parametrize("tail", [b"", b"<!-- seen by a relay -->\n", b"<?pi ?>"])
def test_both_layouts_are_verified(sign_it: Callable[[Tsk, bytes], bytes], tail: bytes, key: Tsk) -> None:
    document = packet("ivo://test/x#1")
    signed = sign_it(key, document) + tail
    assert Finding.GOOD in check(signed, key)
    assert element_bytes(signed) == element_bytes(document)
    assert broker_packet(signed).hash == broker_packet(document).hash  # it makes no new event


def test_the_documented_layout_is_written(key: Tsk) -> None:
    document = packet("ivo://test/x#1")
    signed = signed_by(key, document)
    assert signed.startswith(document + b"<!--\n=====BEGIN PGP SIGNATURE=====\n")
    assert signed.endswith(b"\n=====END PGP SIGNATURE=====\n-->\n")
    assert b"--" not in signed[len(document) + 4 : -4]


@given(st.data())
def test_no_changed_byte_of_what_is_signed_is_good(key: Tsk, data: st.DataObject) -> None:
    document = packet("ivo://test/x#1", what="<What><Description>two --&gt; texts</Description></What>")
    (one,) = bundled_signatures(signed_by(key, document))
    at = data.draw(st.integers(0, len(one.signed) - 1))
    changed = bytearray(one.signed)
    changed[at] ^= data.draw(st.integers(1, 255))
    keyring = Keyring([key.extract_certificate()])
    now = datetime.now(UTC)
    assert check_signature(one.signed, one.armor, keyring, now, MONTH).finding is Finding.GOOD
    assert check_signature(bytes(changed), one.armor, keyring, now, MONTH).finding is Finding.BAD


@given(st.binary(max_size=300), st.sampled_from([b"=====", b"^^^^^", b"-----"]))
def test_what_is_no_signature_is_none_or_unreadable(garbage: bytes, fence: bytes) -> None:
    tail = fence + b"BEGIN PGP SIGNATURE" + fence + garbage + fence + b"END PGP SIGNATURE" + fence
    document = b"<?xml version='1.0'?><V/><!--" + tail + b"-->"
    assert set(check(document)) <= {Finding.UNREADABLE, Finding.STALE}


def test_many_signatures_cost_no_more_than_a_few(key: Tsk) -> None:
    document = packet("ivo://test/x#1")
    many = document + b"<!--=====BEGIN PGP SIGNATURE=====x=====END PGP SIGNATURE=====-->" * 10_000
    assert len(bundled_signatures(many)) == MAX_SIGNATURES
    assert len(bundled_signatures(document + b"<!--=====BEGIN PGP SIGNATURE=====-->" * 10_000)) == 0


def test_a_key_that_is_not_known_proves_nothing(key: Tsk) -> None:
    assert check(signed_by(key, packet("ivo://test/x#1"))) == [Finding.UNKNOWN_KEY]
    assert check(signed_by(key, packet("ivo://test/x#1")), make_key()) == [Finding.UNKNOWN_KEY]
    assert check(packet("ivo://test/x#1"), key) == []


def test_an_expired_key_is_refused_even_for_what_it_signed_before() -> None:
    key = make_key(validity=timedelta(days=2))
    document = signed_by(key, packet("ivo://test/x#1"))
    now = datetime.now(UTC)
    assert check(document, key, now=now) == [Finding.GOOD]
    assert check(document, key, now=now + timedelta(days=3)) == [Finding.EXPIRED]


def test_a_revoked_key_is_refused_and_its_revocation_may_stand_in_a_file_of_its_own() -> None:
    key, other = make_key(), make_key("ivo://other")
    document = signed_by(key, packet("ivo://test/x#1"))
    cert = key.extract_certificate()
    certs, revocations = read_keys(bytes(cert.revoke(key.certifier())))
    assert (certs, len(revocations)) == ([], 1)
    keyring = Keyring([cert, other.extract_certificate()], revocations)
    (one,) = bundled_signatures(document)
    verdict = check_signature(one.signed, one.armor, keyring, datetime.now(UTC), MONTH)
    assert verdict.finding is Finding.REVOKED
    assert cert.fingerprint in verdict.reason
    assert len(keyring) == 2


def test_a_signature_that_is_too_old_or_of_the_future_is_refused(key: Tsk) -> None:
    document = signed_by(key, packet("ivo://test/x#1"))
    now = datetime.now(UTC)
    assert check(document, key, now=now + timedelta(days=29)) == [Finding.GOOD]
    assert check(document, key, now=now + timedelta(days=31)) == [Finding.STALE]
    assert check(document, key, now=now - timedelta(hours=1)) == [Finding.STALE]


def test_a_keyring_takes_public_keys_alone(key: Tsk) -> None:
    with pytest.raises(KeyringError, match="secret key"):
        read_keys(str(key).encode())
    with pytest.raises(KeyringError, match="no OpenPGP keys"):
        read_keys(b"hello")
    both = bytes(key.extract_certificate()) + bytes(make_key("ivo://other").extract_certificate())
    assert len(read_keys(both)[0]) == 2


FIRST, SECOND = "a" * 40, "b" * 64
POLICY = f"""
own-names = false
[[signer]]
key = "{FIRST.upper()[:20]} {FIRST.upper()[20:]}"
authors = ["ivo://nasa.gsfc.*", "ivo://one"]
events = ["ivo://nasa.gsfc.gcn/*"]
[[signer]]
key = "{SECOND}"
authors = ["*"]
[subscribers]
keys = ["{SECOND}"]
"""


def test_who_may_sign_for_whom_is_read_from_a_table() -> None:
    policy = read_policy(POLICY)
    assert policy == Policy(
        own_names=False,
        grants=(
            Grant(FIRST, ("ivo://nasa.gsfc.*", "ivo://one"), ("ivo://nasa.gsfc.gcn/*",)),
            Grant(SECOND, ("*",)),
        ),
        subscribers=frozenset({SECOND}),
    )
    assert read_policy("") == Policy()


@pytest.mark.parametrize(
    ("author", "ivorn", "first", "second"),
    [
        ("ivo://NASA.gsfc.tan/gcn", "ivo://nasa.gsfc.gcn/SWIFT#1", True, True),
        ("ivo://nasa.gsfc.tan/gcn", "ivo://elsewhere/SWIFT#1", False, True),
        ("ivo://one", "ivo://nasa.gsfc.gcn/x#1", True, True),
        ("ivo://one/more", "ivo://nasa.gsfc.gcn/x#1", False, True),
        ("ivo://nasaXgsfc.tan", "ivo://nasa.gsfc.gcn/x#1", False, True),
        ("", "ivo://nasa.gsfc.gcn/x#1", False, True),
    ],
)
def test_a_third_party_signs_for_whom_the_table_says(
    author: str, ivorn: str, first: bool, second: bool
) -> None:
    policy = read_policy(POLICY)
    own = (author,)
    assert policy.may_sign(Signer(FIRST, own), author=author, ivorn=ivorn) is first
    assert policy.may_sign(Signer(SECOND, own), author=author, ivorn=ivorn) is second
    assert not policy.may_subscribe(Signer(FIRST, own))


@pytest.mark.parametrize(
    ("names", "may"),
    [
        ((AUTHOR,), True),
        (("somebody", f"{AUTHOR.upper()} (test) <me@test.example>"), True),
        ((f"{AUTHOR}/more",), False),
        ((f"me <{AUTHOR}>",), False),
        ((), False),
    ],
)
def test_a_key_signs_for_the_author_that_it_is_named_after(names: tuple[str, ...], may: bool) -> None:
    assert Policy().may_sign(Signer(FIRST, names), author=AUTHOR, ivorn="ivo://x/y#z") is may
    assert not Policy().may_sign(Signer(FIRST, names), author="", ivorn="ivo://x/y#z")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("own-names = 3", "true or false"),
        ("[[signers]]", "'signers'; it may have own-names, signer, subscribers"),
        ("[[signer]]\nkey='x'", "no authors"),
        ("[[signer]]\nkey='x'\nauthors=['*']", "'x' is no fingerprint"),
        (f"[[signer]]\nkey='{FIRST}'\nauthors='*'", "authors is a list"),
        ("subscribers = []", r"\[subscribers\] is no table"),
        ("half =", "Invalid"),
    ],
)
def test_a_table_that_makes_no_sense_says_where(text: str, complaint: str) -> None:
    with pytest.raises(PolicyError, match=complaint):
        read_policy(text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A keyring's folder, looked at before each check."""
    monkeypatch.setattr(_trust, "LOOK_INTERVAL", 0.0)
    (tmp_path / "keys").mkdir()
    return tmp_path / "keys"


def put(folder: Path, key: Tsk, name: str = "key.asc") -> None:
    (folder / name).write_text(str(key.extract_certificate()))


def event(key: Tsk | None) -> Packet:
    document = packet("ivo://test/x#1")
    return broker_packet(document if key is None else signed_by(key, document))


def test_keys_come_and_go_without_a_restart(folder: Path, key: Tsk) -> None:
    trust = Trust(TrustFiles(folder), MONTH)
    assert trust.judge_event(event(None)).finding is Finding.MISSING
    assert trust.judge_event(event(key)).finding is Finding.UNKNOWN_KEY
    (folder / "broken.asc").write_text("half a key")
    put(folder, key)
    assert trust.judge_event(event(key)).finding is Finding.GOOD
    (folder / "revoked.asc").write_bytes(bytes(key.extract_certificate().revoke(key.certifier())))
    assert trust.judge_event(event(key)).finding is Finding.REVOKED
    (folder / "revoked.asc").unlink()
    (folder / "key.asc").unlink()
    assert trust.judge_event(event(key)).finding is Finding.UNKNOWN_KEY


def test_the_table_is_read_again_and_a_broken_one_lets_nobody_sign(folder: Path) -> None:
    notary, table = make_key("a notary"), folder.parent / "policy.toml"
    put(folder, notary)
    table.write_text("")
    trust = Trust(TrustFiles(folder, table), MONTH)
    verdict = trust.judge_event(event(notary))
    assert verdict.finding is Finding.NOT_ALLOWED
    assert "a notary" in verdict.reason
    assert "for ivo://test" in verdict.reason
    grant = f"[[signer]]\nkey = '{notary.extract_certificate().fingerprint}'\nauthors = ['ivo://test']\n"
    table.write_text(grant)
    assert trust.judge_event(event(notary)).finding is Finding.GOOD
    table.write_text(grant + "oops")
    assert trust.judge_event(event(notary)).finding is Finding.NOT_ALLOWED


def test_the_first_signature_of_somebody_who_may_is_enough(folder: Path, key: Tsk) -> None:
    put(folder, key)
    other = make_key("ivo://other")
    put(folder, other, "other.asc")
    twice = broker_packet(signed_by(key, signed_by(other, packet("ivo://test/x#1"))))
    assert Trust(TrustFiles(folder), MONTH).judge_event(twice).finding is Finding.GOOD


def answer(key: Tsk, broker: str) -> bytes:
    return signed_by(key, encode_now(Transport("authenticate", broker, "ivo://telescope")))


def test_an_answer_is_taken_once_and_only_by_the_broker_that_asked(folder: Path, key: Tsk) -> None:
    put(folder, key)
    times = [datetime.now(UTC)]
    trust = Trust(TrustFiles(folder), MONTH, now=lambda: times[-1])
    mine = answer(key, "ivo://us")
    assert trust.judge_answer(answer(key, "ivo://them"), "ivo://us").finding is Finding.NOT_ALLOWED
    assert trust.judge_answer(mine, "ivo://us").finding is Finding.GOOD
    assert trust.judge_answer(mine + b"<!-- again -->", "ivo://us").finding is Finding.STALE
    times.append(times[0] + timedelta(minutes=6))
    assert trust.judge_answer(mine, "ivo://us").finding is Finding.STALE


def test_a_key_from_a_file_signs_and_one_that_cannot_says_why(tmp_path: Path) -> None:
    now, path = datetime.now(UTC), tmp_path / "secret.asc"
    key = make_key(validity=timedelta(days=1))
    path.write_text(str(key))
    signed = SigningKey(path, None, now).sign(packet("ivo://test/x#1"))
    assert check(signed, key) == [Finding.GOOD]
    with pytest.raises(SigningError, match="expired"):
        SigningKey(path, None, now + timedelta(days=2))
    with pytest.raises(SigningError, match="not well-formed"):
        SigningKey(path, None, now).sign(b"no xml")
    path.write_text(str(key.extract_certificate()))
    with pytest.raises(SigningError, match="is it a secret key"):
        SigningKey(path, None, now)


# --- with GnuPG, where it is installed: signatures are good in both directions

if GPG := shutil.which("gpg"):

    def gpg(home: Path, *words: str, stdin: bytes = b"") -> bytes:
        command = [str(GPG), "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode=loopback", *words]
        environment = {"PATH": os.environ["PATH"]}
        return subprocess.run(command, input=stdin, capture_output=True, check=True, env=environment).stdout

    @pytest.fixture
    def home(tmp_path: Path) -> Iterator[Path]:
        """A home of GnuPG's; the agent that it starts is ended afterwards."""
        (tmp_path / "gpg").mkdir(mode=0o700)
        yield tmp_path / "gpg"
        subprocess.run(["gpgconf", "--homedir", tmp_path / "gpg", "--kill", "all"], check=True)

    @pytest.mark.slow
    def test_gnupg_and_we_believe_each_other(home: Path, tmp_path: Path) -> None:
        document = packet("ivo://test/x#1")
        gpg(home, "--passphrase", "sesame", "--quick-generate-key", AUTHOR, "ed25519", "sign", "never")
        armor = gpg(home, "--passphrase", "sesame", "--armor", "--detach-sign", stdin=element_bytes(document))
        certs, _ = read_keys(gpg(home, "--armor", "--export"))
        keyring = Keyring(certs)
        (one,) = bundled_signatures(bundle(document, armor))
        verdict = check_signature(one.signed, one.armor, keyring, datetime.now(UTC), MONTH)
        assert (verdict.finding, verdict.signer and verdict.signer.names) == (Finding.GOOD, (AUTHOR,))

        secret = tmp_path / "secret.asc"
        secret.write_bytes(gpg(home, "--passphrase", "sesame", "--armor", "--export-secret-keys"))
        with pytest.raises(SigningError, match="NIGHTWIRE_SIGN_PASSWORD"):
            SigningKey(secret, None, datetime.now(UTC))
        signed = SigningKey(secret, "sesame", datetime.now(UTC)).sign(document)
        (tmp_path / "element").write_bytes(element_bytes(signed))
        (tmp_path / "armor").write_bytes(bundled_signatures(signed)[0].armor)
        gpg(home, "--verify", str(tmp_path / "armor"), str(tmp_path / "element"))

        revocation = (home / "openpgp-revocs.d").glob("*.rev")
        lines = next(revocation).read_text().replace(":-----BEGIN", "-----BEGIN")
        _, revocations = read_keys(lines[lines.index("-----BEGIN") :].encode())
        revoked = check_signature(
            one.signed, one.armor, Keyring(certs, revocations), datetime.now(UTC), MONTH
        )
        assert revoked.finding is Finding.REVOKED
