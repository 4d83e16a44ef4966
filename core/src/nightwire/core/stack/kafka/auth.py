"""How the stack's Kafka authenticates clients, and the stack's own credentials."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nightwire.core.kafka import environment
from nightwire.core.runtime import StateError
from nightwire.core.runtime.credentials import read_credentials, write_credentials
from nightwire.core.tls.public import Public

NONE, SCRAM = "none", "scram"

SUPER_USER = "nightwire.stack"
"""Principal of the stack's own processes.  Names of owners and brokers have no dots."""

SECURITY = "org.apache.kafka.common.security"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def doors(
    auth: str | None, public: Public | None, *, local: bool, before: Mapping[str, Any]
) -> tuple[str, Public | None]:
    """Return how clients are authenticated, and what other machines reach; None for nothing.

    Args:
        auth: What is asked for; None is what it was *before*, and `NONE` at first.
        public: What is asked for; None is what it was *before*, and nothing at first.
        local: Other machines reach nothing from now on.
        before: State of the last run.

    Raises:
        StateError: Other machines would come in without a password.
    """
    kept = before.get("public")
    public = None if local else public or (Public.from_json(kept) if kept else None)
    auth = auth or before.get("auth", NONE)
    if public and auth != SCRAM:
        raise StateError(
            f"{public.host} would be open to everybody: `--tls` wants `--auth scram`; "
            "`--no-tls` is for this machine alone"
        )
    return auth, public


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
