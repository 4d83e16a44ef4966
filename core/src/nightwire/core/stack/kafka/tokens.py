"""Tokens by which clients enter Kafka (OAUTHBEARER): an OpenID issuer's, and the site's own."""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from nightwire.core.runtime import LogLimiter, StateError
from nightwire.core.stack.kafka.listeners import LOOPBACK, Listener

log = logging.getLogger("nightwire.stack")

TIMEOUT = 10.0
"""Longest wait for an issuer's answer. [s]"""
BEARER = "org.apache.kafka.common.security.oauthbearer"
MECHANISM = "OAUTHBEARER"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""Java's property of the places that keys may come from."""
CLAIMS = ("sub", "client_id", "azp")
"""Claims that can name a user: the issuer gives them, nobody chooses his own."""


@dataclass(frozen=True)
class TokenIssuer:
    """Whose tokens open Kafka.

    Attributes:
        issuer: Its URL, as tokens name it.
        jwks: Where its public keys are; empty: they are in the file already.
        audience: For whom tokens must be; empty: for anybody whom the issuer serves.
        claim: Which claim is the user's name; one of `CLAIMS`.
        token_endpoint: Where clients ask for tokens, as far as it is known.
    """

    issuer: str
    jwks: str = ""
    audience: str = ""
    claim: str = CLAIMS[0]
    token_endpoint: str = ""

    def as_json(self) -> dict[str, str]:
        """Return it as the state file keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, str]) -> "TokenIssuer":
        """Return what `as_json` kept."""
        return cls(**kept)

    def settings(self, keys: Path) -> dict[str, object]:
        """Return a listener's settings that let in who shows its tokens, by its public *keys*."""
        found: dict[str, object] = {
            "sasl.jaas.config": f"{BEARER}.OAuthBearerLoginModule required;",
            "sasl.server.callback.handler.class": f"{BEARER}.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.issuer": self.issuer,
            "sasl.oauthbearer.sub.claim.name": self.claim,
        }
        found |= {"sasl.oauthbearer.expected.audience": self.audience} if self.audience else {}
        return {f"oauthbearer.{name}": value for name, value in found.items()}


def discovered(issuer: str, audience: str = "", claim: str = CLAIMS[0]) -> TokenIssuer:
    """Return the issuer at a URL, as its discovery document (OpenID Connect) describes it.

    Raises:
        StateError: It does not answer, or is not the issuer that it says it is; or the way there is
            open to others.
    """
    issuer = issuer.removesuffix("/")
    url = httpx.URL(issuer)
    if url.scheme != "https" and url.host not in (LOOPBACK, "localhost"):
        raise StateError(f"{issuer} cannot be trusted: an issuer of tokens is reached by https://")
    found = _answer(f"{issuer}/.well-known/openid-configuration")
    if found.get("issuer", "").removesuffix("/") != issuer or not found.get("jwks_uri"):
        raise StateError(f"{issuer} says that it is {found.get('issuer')!r}: take the name that it gives")
    where = str(found.get("token_endpoint", ""))
    return TokenIssuer(str(found["issuer"]), str(found["jwks_uri"]), audience, claim, where)


def _answer(url: str) -> dict[str, Any]:
    try:
        answer = httpx.get(url, timeout=TIMEOUT, follow_redirects=False).raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        raise StateError(f"the issuer of tokens does not answer at {url}: {error}") from error
    if not isinstance(answer, dict):
        raise StateError(f"the issuer of tokens answers at {url} with what is no JSON object")
    return answer


class IssuerKeys:
    """A file of an issuer's public keys, which Kafka reads again whenever it changed.

    So Kafka starts while the issuer is away, and goes on with the keys that it had.

    Args:
        issuer: The issuer.
        path: The file.
    """

    def __init__(self, issuer: TokenIssuer, path: Path) -> None:
        self._issuer, self.path = issuer, path
        self._limiter = LogLimiter()

    def prepare(self) -> None:
        """Write the file.

        Raises:
            StateError: The issuer does not answer, and never did.
        """
        try:
            self._write()
        except StateError as error:
            if not self.path.exists():
                raise
            log.warning("going on with the keys that it had: %s", error)

    def follow(self) -> bool:
        """Write the file again where the issuer has other keys; return whether it has."""
        try:
            return self._write()
        except StateError as error:
            if self._limiter.allows():
                log.warning("going on with the keys that it had: %s", error)
            return False

    def _write(self) -> bool:
        found = _answer(self._issuer.jwks)
        if not found.get("keys"):
            raise StateError(f"the issuer of tokens has no keys at {self._issuer.jwks}")
        text = json.dumps({"keys": found["keys"]}, sort_keys=True)
        if self.path.exists() and self.path.read_text() == text:
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.path)
        return True


def tokens_listener(port: int, issuer: TokenIssuer, keys: Path) -> Listener:
    """Return the listener on this machine at which the site's own tokens are judged."""
    return Listener("TOKENS", f"{LOOPBACK}:{port}", [MECHANISM], settings=issuer.settings(keys))
