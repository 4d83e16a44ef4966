"""What `nightwire user` and `nightwire broker` do and say."""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace

import click
from rich.console import Console
from rich.table import Table

from nightwire.core.access import passwords as _passwords
from nightwire.core.access.changes import (
    AccessPart,
    NameTakenError,
    PrincipalState,
    Step,
    additions,
    removals,
    verb,
)
from nightwire.core.access.kafka_admin import AccessAdmin, OpenKafkaError
from nightwire.core.access.passwords import PasswordError
from nightwire.core.access.quotas import QuotaError
from nightwire.core.access.rights import Kind, Operation, Resource, Rights
from nightwire.core.cli import main
from nightwire.core.cli.sizes import spell_size
from nightwire.core.kafka import environment, identity
from nightwire.core.runtime import Endpoints, NoJavaError

MENDED = (NameTakenError, OpenKafkaError, PasswordError, QuotaError, NoJavaError)
"""Errors whose message is all that a person needs."""


def add(
    where: Endpoints,
    wanted: Rights,
    *,
    quota: int | None,
    no_quota: bool,
    new_password: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Give *wanted* to its principal, and say what was done, and how it enters.

    Raises:
        UsageError: There is to be a quota, and none is to be set.
        ClickException: It cannot be done.
    """
    if no_quota and quota is not None:
        raise click.UsageError("--quota sets what --no-quota leaves alone")
    wanted = replace(wanted, quota=None) if no_quota else wanted
    try:
        admin, given = AccessAdmin(where.kafka), _passwords.given_password()
        now = admin.standing(wanted.name, wanted.topics, with_quota=quota is not None)
        steps = additions(wanted, now, quota=quota, new_password=new_password)
        sets = any(step.part is AccessPart.PASSWORD for step in steps)
        password = (given or _passwords.new_password()) if sets else ""
        if not dry_run:
            admin.do(wanted.name, steps, adding=True, password=password)
    except MENDED as error:
        raise click.ClickException(str(error)) from error
    keys = {} if dry_run else _keys(where, wanted.name, password="" if given else password)
    _say(wanted.name, steps, keys, dry_run, as_json)


def order(kafka: str, streams: Iterable[Sequence[str]], *, dry_run: bool) -> None:
    """Submit filters, given as the words of `nightwire filter submit`; what that says goes to standard error.

    Raises:
        SystemExit: One is refused; it was said why.
    """
    for words in streams:
        if dry_run:
            click.echo(f"nightwire filter submit {shlex.join(words)}", err=True)
            continue
        with redirect_stdout(sys.stderr):  # standard output is for what enters the environment
            main(["filter", "submit", *words, "--bootstrap", kafka], standalone_mode=False)


def remove(kafka: str, name: str, kind: Kind, *, dry_run: bool, as_json: bool) -> None:
    """Take everything from principal *name*, and say so.

    Raises:
        ClickException: There is none, or it is of another kind.
    """
    try:
        admin = AccessAdmin(kafka)
        now = admin.standing(name)
        _check_kind(now, kind)
        steps = removals(now)
        if not dry_run:
            admin.do(name, steps, adding=False)
    except MENDED as error:
        raise click.ClickException(str(error)) from error
    _say(name, steps, {}, dry_run, as_json)
    for live in admin.live_filters(name):
        advice = f"nightwire filter remove {live} --owner {name}"
        click.echo(f"its filter {live} runs on: `{advice}`", err=True)


def show(kafka: str, kind: Kind, *, as_json: bool) -> None:
    """List the principals of a *kind*.

    Raises:
        ClickException: Kafka believes everybody, or cannot be asked.
    """
    try:
        found = AccessAdmin(kafka).everybody(kind)
    except MENDED as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps([_record(one) for one in found], indent=2))
    else:
        Console().print(_table(found))


def _check_kind(now: PrincipalState, kind: Kind) -> None:
    if now.kind is kind:
        return
    if now.kind is None:
        raise NameTakenError(f"there is no {kind.value} {now.name}: `nightwire {verb(kind)} list` shows them")
    raise NameTakenError(f"{now.name} is no {kind.value}: `nightwire {verb(now.kind)} remove {now.name}`")


def _keys(where: Endpoints, name: str, password: str) -> dict[str, str]:
    """Return the variables with which principal *name* enters; without its *password* where that is empty."""
    protocol = identity(where.kafka).get("security.protocol", "SASL_PLAINTEXT")
    client = {"security.protocol": protocol, "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": name}
    found = {"KAFKA_BOOTSTRAP_SERVERS": where.kafka}
    if where.schema_registry:
        found["NIGHTWIRE_SCHEMA_REGISTRY"] = where.schema_registry
    return found | environment(client | ({"sasl.password": password} if password else {}))


def _say(name: str, steps: Sequence[Step], keys: Mapping[str, str], dry_run: bool, as_json: bool) -> None:
    if as_json:
        done = [step.text for step in steps]
        click.echo(
            json.dumps({"name": name, "applied": not dry_run, "steps": done, "environment": dict(keys)})
        )
        return
    for step in steps:
        click.echo(step.text, err=True)
    if not steps:
        click.echo(f"{name} is as it should be", err=True)
    if dry_run:
        click.echo("nothing was changed (--dry-run)", err=True)
    if "KAFKA_SASL_PASSWORD" in keys:
        click.echo(f"{name} enters with these; the password is shown this once:", err=True)
        click.echo("\n".join(f"export {variable}={value}" for variable, value in keys.items()))


def _record(one: PrincipalState) -> dict[str, object]:
    return {
        "name": one.name,
        "password": one.password,
        "quota": one.quota,
        "rights": sorted(map(str, one.grants)),
    }


def _table(found: Iterable[PrincipalState]) -> Table:
    table = Table("name", "reads", "writes", "groups", "quota", box=None, pad_edge=False, header_style="bold")
    for one in found:
        quota = "none" if one.quota is None else f"{spell_size(one.quota)}/s"
        name = one.name if one.password else f"{one.name} (no password)"
        table.add_row(name, _names(one, Operation.READ), _names(one, Operation.WRITE), _groups(one), quota)
    return table


def _names(one: PrincipalState, deed: Operation) -> str:
    return _joined(
        f"{g.name}{'*' * g.prefixed}" for g in one.grants if g.what is Resource.TOPIC and g.deed is deed
    )


def _groups(one: PrincipalState) -> str:
    return _joined(
        f"{grant.name}{'*' * grant.prefixed}" for grant in one.grants if grant.what is Resource.GROUP
    )


def _joined(names: Iterable[str]) -> str:
    return " ".join(sorted(names))
