"""The verbs of `nightwire user`: the operator lets owners in, and they help themselves."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from nightwire.core.access.commands import add_remove_and_list, add_user, named
from nightwire.core.cli import completion
from nightwire.core.cli.options import (
    DOOR_OPTIONS,
    FILE,
    bootstrap_option,
    duration_option,
    metrics_port_option,
    reached,
    service_of,
    with_options,
)
from nightwire.schemas import MendableError

PROMPT = "A new password, of 12 or more characters (nothing: one is made)"
CODE = "NIGHTWIRE_INVITATION"


@click.group()
def user() -> None:
    """Owners of filters: let them in with a password, rights and a quota, or out again.

    It is for the operator of a Kafka that asks who is there (`nightwire up --auth scram`); accept,
    password and token are for the owners themselves.

    \b
    Examples:
      nightwire user invite ann > ann.invitation
      nightwire user add ann --quota 20MB
    """


user.add_command(add_user)
add_remove_and_list(user, "owner", "ann")


@user.command()
@click.argument("name", shell_complete=completion.owners)
@duration_option("--life", "7d", "How long the invitation holds.")
@bootstrap_option
def invite(name: str, life: float, bootstrap: str | None) -> None:
    """Invite the owner NAME, who chooses his password himself.

    What is printed is for NAME alone: it holds once, and for a while.  Run again, it replaces the
    invitation before; an owner who is in goes on with his password until he takes it up.

    \b
    Examples:
      nightwire user invite ann > ann.invitation
      nightwire user accept ann.invitation > ann.env       by Ann, on her machine
    """
    from nightwire.core.access import operations, rights
    from nightwire.core.access.kafka_admin import AccessAdmin
    from nightwire.core.logins.invitations import Invitation

    where = reached(bootstrap)
    if where.users is None and "users" not in where.public:
        raise click.ClickException("nobody gives passwords here: `nightwire up --auth scram` does")
    operations.allow(where.kafka, named(rights.owner, name))
    invitation = Invitation.fresh(name, life)
    AccessAdmin(where.kafka).invite(invitation.principal, invitation.code)
    _export(operations.credentials(where, name) | {CODE: invitation.code})
    click.echo(f"for {name} alone; `nightwire user accept FILE` takes it up", err=True)


@user.command()
@click.argument("invitation", type=FILE)
def accept(invitation: Path) -> None:
    """Take up an INVITATION: choose a password, and print all that lets you in.

    NIGHTWIRE_NEW_PASSWORD gives the password; else it is asked for.

    \b
    Example:
      nightwire user accept ann.invitation > ann.env && . ann.env
    """
    from nightwire.core.logins.client import post

    variables = _variables(invitation)
    code = variables.pop(CODE, None)
    if code is None or "NIGHTWIRE_USERS" not in variables:
        raise click.ClickException(f"{invitation} is no invitation: `nightwire user invite` prints one")
    os.environ.update(variables)
    password = _chosen_password()
    post(variables["NIGHTWIRE_USERS"], "/invitations/accept", {"code": code, "password": password})
    _export(variables | {"KAFKA_SASL_PASSWORD": password})
    click.echo("welcome: these let you in, keep them from others", err=True)


@user.command("password")
def change_password() -> None:
    """Change your own password; print the variable that holds the new one.

    KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD say who you are.  NIGHTWIRE_NEW_PASSWORD gives the
    new password; else it is asked for.

    \b
    Example:
      nightwire user password >> ann.env
    """
    from nightwire.core.logins.client import post

    where, login = _self()
    password = _chosen_password()
    post(where, "/password", {"password": password}, login)
    _export({"KAFKA_SASL_PASSWORD": password})


@user.command()
@duration_option("--life", "1d", "How long it holds; at most a year.")
def token(life: float) -> None:
    """Print a token that lets you into HTTP interfaces for a while.

    A program shows it instead of your password: "Authorization: Bearer TOKEN", or
    NIGHTWIRE_SCHEMA_REGISTRY_LOGIN=TOKEN for our own clients.  The operator can end it early
    (`nightwire user revoke`).

    \b
    Example:
      nightwire user token --life 12h
    """
    from nightwire.core.logins.client import post

    where, login = _self()
    click.echo(post(where, "/tokens", {"seconds": life}, login)["token"])


@user.command()
@bootstrap_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8082, show_default=True, help="Port to listen on."
)
@click.option(
    "--token-key",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File of the key that signs tokens; made the first time.",
)
@metrics_port_option
@with_options(DOOR_OPTIONS[:3])
def serve(token_key: Path, **more: Any) -> None:
    """Serve invitations, password changes and tokens over HTTP; `nightwire up` does.

    \b
    Example:
      nightwire user serve --token-key tokens.key.pem --port 8082
    """
    from nightwire.core.logins.server import serve as serve_users
    from nightwire.core.presence import HttpService
    from nightwire.core.runtime import setup_logging

    setup_logging("nightwire.users")
    serve_users(HttpService(**service_of(more)), token_key)


class NobodyError(MendableError):
    """The environment does not say who we are."""


def _self() -> tuple[str, tuple[str, str]]:
    """Return where users help themselves, and our own name and password."""
    from nightwire.core.kafka import login
    from nightwire.core.runtime import find_endpoints

    where = find_endpoints()
    url, found = where.users, login(where.kafka)
    if url is None or found is None or "KAFKA_SASL_USERNAME" not in os.environ:
        raise NobodyError(
            "who are you? KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD and NIGHTWIRE_USERS say it: "
            "they are in the file that `nightwire user accept` printed"
        )
    return url, found


def _chosen_password() -> str:
    from nightwire.core.access.passwords import checked_password, given_password, random_password

    if given := given_password():
        return given
    if not sys.stdin.isatty():
        return random_password()
    asked = click.prompt(
        PROMPT, default="", hide_input=True, show_default=False, confirmation_prompt=True, err=True
    )
    return checked_password(asked) if asked else random_password()


def _export(variables: Mapping[str, str]) -> None:
    """Print *variables* for a shell."""
    click.echo("\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items()))


def _variables(path: Path) -> dict[str, str]:
    """Return the variables that a file of `_export` sets."""
    try:
        words = shlex.split(path.read_text())
    except ValueError as error:
        raise click.ClickException(f"{path} cannot be read: {error}") from error
    return dict(word.split("=", 1) for word in words if "=" in word)
