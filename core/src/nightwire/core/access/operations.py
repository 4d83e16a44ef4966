"""`nightwire user` and `nightwire broker`: principals are added, removed and listed."""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import click

from nightwire.core.access.changes import (
    AccessPart,
    NameTakenError,
    PrincipalState,
    Step,
    additions,
    removals,
    revocations,
    verb,
)
from nightwire.core.access.kafka_admin import AccessAdmin
from nightwire.core.access.passwords import given_password, random_password
from nightwire.core.access.rights import Kind, Operation, Resource, Rights
from nightwire.core.cli import main
from nightwire.core.cli.parameter_types import spell_size
from nightwire.core.cli.tables import Cell, Column, Listing, show_tables
from nightwire.core.kafka import environment, identity
from nightwire.core.runtime import Endpoints

DOORS = {
    "schema_registry": "NIGHTWIRE_SCHEMA_REGISTRY",
    "users": "NIGHTWIRE_USERS",
    "directory": "NIGHTWIRE_DIRECTORY",
    "archive": "NIGHTWIRE_ARCHIVE_HTTP",
}
"""The variables that name the doors of a site."""


def add(
    where: Endpoints,
    wanted: Rights,
    *,
    quota: int | None,
    no_quota: bool,
    new_password: bool,
    dry_run: bool,
    as_json: bool,
    no_password: bool = False,
) -> None:
    """Give *wanted* to its principal; print the changes, and its credentials.

    With *no_password* it gets rights alone, for somebody who comes with an issuer's tokens.

    Raises:
        UsageError: Both a quota and none are asked for.
        MendableError: It cannot be done.
    """
    if no_quota and quota is not None:
        raise click.UsageError("--quota sets what --no-quota leaves alone")
    if no_password and new_password:
        raise click.UsageError("--new-password sets what --no-password leaves alone")
    wanted = replace(wanted, quota=None) if no_quota else wanted
    admin, given = AccessAdmin(where.kafka), given_password()
    now = admin.principal_state(wanted.name, wanted.topics, with_quota=quota is not None)
    steps = additions(wanted, now, quota=quota, new_password=new_password, password=not no_password)
    sets = any(step.part is AccessPart.PASSWORD for step in steps)
    password = (given or random_password()) if sets else ""
    if not dry_run:
        admin.apply(wanted.name, steps, adding=True, password=password)
    variables = {} if dry_run else credentials(where, wanted.name, password="" if given else password)
    if no_password and not dry_run:
        variables |= _of_tokens(where, wanted.name)
    _report(wanted.name, steps, variables, dry_run, as_json)


def allow(kafka: str, wanted: Rights) -> None:
    """Give *wanted* to its principal, but no password; say what changes.

    Raises:
        MendableError: It cannot be done.
    """
    admin = AccessAdmin(kafka)
    now = admin.principal_state(wanted.name, wanted.topics, with_quota=False)
    steps = additions(replace(wanted, quota=None), now, quota=None, password=False)
    admin.apply(wanted.name, steps, adding=True)
    for step in steps:
        click.echo(step.text, err=True)


def order(kafka: str, streams: Iterable[Sequence[str]], *, dry_run: bool) -> None:
    """Submit filters, given as the words of `nightwire filter submit`; its output goes to stderr.

    Raises:
        SystemExit: One is refused; the reason was printed.
    """
    for words in streams:
        if dry_run:
            click.echo(f"nightwire filter submit {shlex.join(words)}", err=True)
            continue
        with redirect_stdout(sys.stderr):  # standard output is for the credentials
            main(["filter", "submit", *words, "--bootstrap", kafka], standalone_mode=False)


def remove(kafka: str, name: str, kind: Kind, *, dry_run: bool, as_json: bool) -> None:
    """Take password, rights and quota from principal *name*; print the changes.

    Raises:
        NameTakenError: There is no such principal, or it is of another kind.
    """
    admin = AccessAdmin(kafka)
    now = admin.principal_state(name)
    _check_kind(now, kind)
    steps = removals(now)
    if not dry_run:
        admin.apply(name, steps, adding=False)
    _report(name, steps, {}, dry_run, as_json)
    for live in admin.live_filters(name):
        advice = f"nightwire filter remove {live} --owner {name}"
        click.echo(f"its filter {live} is suspended, unless it reads only its own: `{advice}`", err=True)


def revoke(kafka: str, name: str, kind: Kind, *, dry_run: bool, as_json: bool) -> None:
    """Lock principal *name* out, also from open connections; its rights stay.  Print the changes.

    Raises:
        NameTakenError: There is no such principal, or it is of another kind.
    """
    admin = AccessAdmin(kafka)
    now = admin.principal_state(name, with_quota=False)
    _check_kind(now, kind)
    steps = revocations(now)
    if not dry_run:
        admin.revoke(name, steps)
    _report(name, steps, {}, dry_run, as_json)


def show(kafka: str, kind: Kind, *, as_json: bool) -> None:
    """List the principals of a *kind*.

    Raises:
        OpenKafkaError: Kafka believes everybody.
    """
    found = AccessAdmin(kafka).principals(kind)
    if as_json:
        click.echo(json.dumps([_record(one) for one in found], indent=2))
    else:
        show_tables(_table(found))


def _check_kind(now: PrincipalState, kind: Kind) -> None:
    if now.kind is kind:
        return
    if now.kind is None:
        raise NameTakenError(f"there is no {kind.value} {now.name}: `nightwire {verb(kind)} list` shows them")
    raise NameTakenError(f"{now.name} is no {kind.value}: `nightwire {verb(now.kind)} remove {now.name}`")


def credentials(where: Endpoints, name: str, password: str = "") -> dict[str, str]:
    """Return the environment of principal *name*; without its *password* where that is empty."""
    public = where.public
    protocol = "SASL_SSL" if public else identity(where.kafka).get("security.protocol", "SASL_PLAINTEXT")
    client = {"security.protocol": protocol, "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": name}
    if ca := public.get("ca"):
        client["ssl.ca.pem"] = Path(ca).read_text().strip()
    found = {"KAFKA_BOOTSTRAP_SERVERS": public.get("kafka", where.kafka)}
    for door, variable in DOORS.items():
        if at := public.get(door, getattr(where, door)):
            found[variable] = at
    return found | environment(client | ({"sasl.password": password} if password else {}))


def _of_tokens(where: Endpoints, name: str) -> dict[str, str]:
    """Return what of *name*'s environment is another for who comes with an issuer's tokens."""
    client = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"}
    client |= {"sasl.oauthbearer.token.endpoint.url": where.tokens} if where.tokens else {}
    return environment(client | {"sasl.oauthbearer.client.id": name})


def _report(
    name: str, steps: Sequence[Step], variables: Mapping[str, str], dry_run: bool, as_json: bool
) -> None:
    if as_json:
        done = [step.text for step in steps]
        click.echo(
            json.dumps({"name": name, "applied": not dry_run, "steps": done, "environment": dict(variables)})
        )
        return
    for step in steps:
        click.echo(step.text, err=True)
    if not steps:
        click.echo(f"{name} is as it should be", err=True)
    if dry_run:
        click.echo("nothing was changed (--dry-run)", err=True)
    tokens = variables.get("KAFKA_SASL_MECHANISM") == "OAUTHBEARER"
    if tokens or "KAFKA_SASL_PASSWORD" in variables:
        more = (
            "and the client's secret, in KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET"
            if tokens
            else "the password is shown this once"
        )
        click.echo(f"{name} enters with these; {more}:", err=True)
        click.echo("\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items()))


def _record(one: PrincipalState) -> dict[str, object]:
    return {
        "name": one.name,
        "password": one.password,
        "revoked": one.revoked,
        "quota": one.quota,
        "rights": sorted(map(str, one.grants)),
    }


def _table(found: Iterable[PrincipalState]) -> Listing:
    rows: list[list[Cell]] = []
    for one in found:
        quota = "none" if one.quota is None else f"{spell_size(one.quota)}/s"
        state = " (revoked)" if one.revoked else "" if one.password else " (no password)"
        name = one.name + state
        rows.append([name, _names(one, Operation.READ), _names(one, Operation.WRITE), _groups(one), quota])
    return Listing([Column(title) for title in ("name", "reads", "writes", "groups", "quota")], rows)


def _names(one: PrincipalState, operation: Operation) -> str:
    return _joined(
        f"{g.name}{'*' * g.prefixed}"
        for g in one.grants
        if g.resource is Resource.TOPIC and g.operation is operation
    )


def _groups(one: PrincipalState) -> str:
    return _joined(
        f"{grant.name}{'*' * grant.prefixed}" for grant in one.grants if grant.resource is Resource.GROUP
    )


def _joined(names: Iterable[str]) -> str:
    return " ".join(sorted(names))
