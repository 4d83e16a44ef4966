"""An issuer of tokens describes itself; its keys are followed, and kept while it is away."""

import json
from pathlib import Path

import pytest

from nightwire.core.runtime import StateError
from nightwire.core.stack.kafka.auth import SCRAM, Doors
from nightwire.core.stack.kafka.tokens import IssuerKeys, TokenIssuer, discovered
from tests._secure_broker import Issuer


def test_an_issuer_is_as_it_describes_itself(tmp_path: Path) -> None:
    with Issuer(tmp_path / "jwks.json", issuer=None) as issuer:
        found = discovered(f"{issuer.url}/", "me", "client_id")
        assert found == TokenIssuer(issuer.url, f"{issuer.url}/jwks", "me", "client_id", issuer.token_url)
    assert TokenIssuer.from_json(json.loads(json.dumps(found.as_json()))) == found


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://issuer.example.org", "reached by https"),
        ("http://127.0.0.1:9", "does not answer at http://127.0.0.1:9/.well-known"),
    ],
)
def test_an_issuer_that_cannot_be_trusted_or_asked_is_refused(url: str, why: str) -> None:
    with pytest.raises(StateError, match=why):
        discovered(url)


def test_an_issuer_that_says_that_it_is_another_is_refused(tmp_path: Path) -> None:
    with (
        Issuer(tmp_path / "jwks.json", issuer="https://issuer.test") as issuer,
        pytest.raises(StateError, match=r"says that it is 'https://issuer\.test'"),
    ):
        discovered(issuer.url)


def test_new_keys_are_followed_and_the_old_ones_kept_while_it_is_away(tmp_path: Path) -> None:
    with Issuer(tmp_path / "its.json", issuer=None) as issuer:
        keys = IssuerKeys(discovered(issuer.url), tmp_path / "kafka" / "jwks.json")
        keys.prepare()
        first = keys.path.read_text()
        assert not keys.follow()
        with Issuer(tmp_path / "other.json") as other:
            issuer.keys = other.keys
        assert keys.follow()
        assert keys.path.read_text() != first
        issuer.keys = {"keys": []}
        assert not keys.follow()
    assert not keys.follow()
    keys.prepare()
    assert json.loads(keys.path.read_text()) == other.keys
    keys.path.unlink()
    with pytest.raises(StateError, match="does not answer"):
        keys.prepare()


def test_tokens_want_a_kafka_that_asks_who_is_there() -> None:
    issuer = TokenIssuer("https://a.example.org", "https://a.example.org/jwks")
    with pytest.raises(StateError, match="--oidc wants --auth scram"):
        Doors(issuer=issuer).after({})
    kept = Doors(SCRAM, issuer=issuer).as_json()
    assert Doors().after(kept).issuer == issuer
    assert Doors(no_issuer=True).after(kept).issuer is None
