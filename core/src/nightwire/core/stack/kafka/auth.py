"""How the stack's Kafka authenticates clients, and the stack's own credentials."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nightwire.core.kafka import environment
from nightwire.core.runtime import StateError
from nightwire.core.runtime.credentials import read_credentials, write_credentials
from nightwire.core.stack.kafka.listeners import LOOPBACK, Listener
from nightwire.core.stack.kafka.tokens import MECHANISM, TokenIssuer
from nightwire.core.tls.public import Public

NONE, SCRAM = "none", "scram"

SUPER_USER = "nightwire.stack"
"""Principal of the stack's own processes.  Names of owners and brokers have no dots."""

SECURITY = "org.apache.kafka.common.security"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True)
class Doors:
    """By which clients come in; what is None is as the last time, and at first not there.

    Attributes:
        auth: ``none`` or ``scram``.
        public: What other machines reach.
        issuer: Whose tokens open Kafka, beside passwords.
        local: Other machines reach nothing from now on.
        no_issuer: No tokens of an issuer from now on.
    """

    auth: str | None = None
    public: Public | None = None
    issuer: TokenIssuer | None = None
    local: bool = False
    no_issuer: bool = False

    def after(self, before: Mapping[str, Any]) -> "Doors":
        """Return them with what is None replaced by what was there *before*, by the state file.

        Raises:
            StateError: Other machines would come in without a password, or tokens decide nothing.
        """
        public, issuer = before.get("public"), before.get("issuer")
        found = Doors(
            self.auth or before.get("auth", NONE),
            None if self.local else self.public or (Public.from_json(public) if public else None),
            None if self.no_issuer else self.issuer or (TokenIssuer.from_json(issuer) if issuer else None),
        )
        if found.public and found.auth != SCRAM:
            raise StateError(
                f"{found.public.host} would be open to everybody: `--tls` wants `--auth scram`; "
                "`--no-tls` is for this machine alone"
            )
        if found.issuer and found.auth != SCRAM:
            raise StateError("tokens decide nothing where everybody is believed: --oidc wants --auth scram")
        return found

    def as_json(self) -> dict[str, Any]:
        """Return them as the state file keeps them."""
        return {
            "auth": self.auth,
            "public": self.public and self.public.as_json(),
            "issuer": self.issuer and self.issuer.as_json(),
        }


def unlock(folder: Path, *, renew: bool = False) -> Mapping[str, str]:
    """Return the stack's own credentials, made at the first time, and use them from now on.

    They go into this process's environment, where its children find them; nobody else may enter
    *folder*.

    Args:
        folder: The stack's state.
        renew: Make others than those of the last run.
    """
    folder.chmod(0o700)
    credentials = read_credentials(folder)
    if renew or not credentials:
        credentials = operator_credentials(secrets.token_urlsafe(32))
        write_credentials(folder, credentials)
    os.environ.update(environment(credentials))
    return credentials


def operator_credentials(password: str) -> dict[str, str]:
    """Return librdkafka's properties of the stack's own processes."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": SUPER_USER,
        "sasl.password": password,
    }


PROTOCOLS = "CLIENT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
"""Of the listeners on 127.0.0.1."""
PLAIN, SCRAM_SHA_512 = "PLAIN", "SCRAM-SHA-512"

SCRAM_LOGIN = f"{SECURITY}.scram.ScramLoginModule required;"


def listener_properties(password: str) -> dict[str, object]:
    """Return the settings of a Kafka that authenticates clients and denies what is not allowed.

    Owners and brokers have SCRAM-SHA-512.  The stack itself comes by PLAIN, from this machine
    alone: its password is in Kafka's settings, so it is there before the first user can be made,
    and in any older state.

    Args:
        password: The stack's own.
    """
    login = f"{SECURITY}.plain.PlainLoginModule required "
    login += f'username="{SUPER_USER}" password="{password}" "user_{SUPER_USER}"="{password}";'
    return {
        "listener.security.protocol.map": PROTOCOLS,
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": login,
        "listener.name.client.scram-sha-512.sasl.jaas.config": SCRAM_LOGIN,
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": login,
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{SUPER_USER}",
        "allow.everyone.if.no.acl.found": "false",
    }


def client_listener(port: int, tokens: Mapping[str, object] = MappingProxyType({})) -> Listener:
    """Return the listener of the stack's processes and of whoever is on this machine.

    Args:
        port: Where it listens.
        tokens: Settings by which tokens are judged; empty where none are taken.
    """
    mechanisms = [SCRAM_SHA_512, PLAIN, *([MECHANISM] if tokens else [])]
    return Listener("CLIENT", f"{LOOPBACK}:{port}", mechanisms, settings=tokens)
