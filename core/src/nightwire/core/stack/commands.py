"""The verbs of the embedded stack: up, down, status, logs, doctor, demo."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.cli.options import duration_option, json_option, wide_option
from nightwire.core.cli.parameter_types import Size

if TYPE_CHECKING:
    from nightwire.core.stack.kafka.tokens import TokenIssuer
    from nightwire.core.tls.public import Public

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _look_there(_ctx: click.Context, _param: click.Parameter, folder: Path | None) -> Path | None:
    """Let everything that this process does find the stack in *folder*, and its keys."""
    if folder is not None:
        os.environ["NIGHTWIRE_STATE"] = str(folder.resolve())
    return folder


state_option = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    callback=_look_there,
    help="Folder of the stack's state.  [default: .nightwire here, or in a parent]",
)


@click.command()
@click.option("--foreground", is_flag=True, help="Stay, and stop everything on Ctrl-C.")
@click.option(
    "--ports",
    type=click.Choice(["usual", "free"]),
    default="usual",
    show_default=True,
    help="Try 9092, 8081, 8084, 8098, 8099, 9090 first, or take any free ports.",
)
@click.option("--stream", type=click.Choice(["sim"]), help="Play a visit again and again: a test stream.")
@click.option("--alerts", default=1000, show_default=True, help="Alerts a visit of the test stream.")
@duration_option("--interval", "39s", "Time between its visits.")
@click.option("--remote", multiple=True, metavar="HOST:PORT", help="VTP broker to subscribe to; repeatable.")
@click.option("--feed", multiple=True, metavar="TOPIC", help="Filter topic for VTP subscribers; repeatable.")
@click.option(
    "--site",
    envvar="NIGHTWIRE_SITE",
    default="",
    metavar="NAME",
    help="Name of this site in the directory, also NIGHTWIRE_SITE.  [default: as last time; at first local]",
)
@click.option("--light", is_flag=True, help="Run the filters without Spark: quicker to start, less memory.")
@click.option(
    "--archive/--no-archive",
    default=None,
    help="Keep what passes, in tables.  [default: where its packages are, but not of a stream]",
)
@click.option("--jmx", is_flag=True, help="Kafka tells Prometheus about itself, for the dashboard Kafka.")
@click.option("--no-portal", is_flag=True, help="Without the pages to look at: less memory.")
@click.option("--no-flows", is_flag=True, help="Without the worker that runs flows: less memory.")
@click.option(
    "--auth",
    type=click.Choice(["none", "scram"]),
    help="Believe every client, or ask owners and brokers for passwords.  "
    "[default: as last time; at first none]",
)
@click.option(
    "--new-password", is_flag=True, help="Another password for the stack's own processes, with --auth scram."
)
@click.option(
    "--tls",
    "host",
    is_flag=False,
    flag_value="",
    metavar="[HOST]",
    help="Let other machines in: by TLS, a password and the name HOST.  "
    "[default: as last time; HOST: that of the certificate, else this machine's name]",
)
@click.option("--tls-cert", type=FILE, help="Certificate and chain for HOST, of one's own (PEM).")
@click.option("--tls-key", type=FILE, help="Its private key.  [default: in the file of --tls-cert]")
@click.option("--no-tls", is_flag=True, help="For this machine alone again.")
@click.option(
    "--oidc",
    metavar="URL",
    help="Issuer of tokens (OpenID Connect) that open Kafka beside passwords.  [default: as last time]",
)
@click.option(
    "--oidc-audience", default="", metavar="NAME", help="Only tokens for NAME; without, all of the issuer's."
)
@click.option(
    "--oidc-claim",
    type=click.Choice(["sub", "client_id", "azp"]),
    default="sub",
    show_default=True,
    help="Which claim is the user's name.",
)
@click.option("--no-oidc", is_flag=True, help="Passwords alone again.")
@click.option(
    "--least-disk", type=Size(), default="1GB", show_default=True, help="Refuse to start with less room."
)
@click.option("--timeout", default=240.0, show_default=True, help="Longest wait until all is healthy. [s]")
@state_option
def up(
    foreground: bool,
    ports: str,
    stream: str | None,
    alerts: int,
    interval: float,
    remote: tuple[str, ...],
    feed: tuple[str, ...],
    site: str,
    light: bool,
    archive: bool | None,
    jmx: bool,
    no_portal: bool,
    no_flows: bool,
    auth: str | None,
    new_password: bool,
    host: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    no_tls: bool,
    oidc: str | None,
    oidc_audience: str,
    oidc_claim: str,
    no_oidc: bool,
    least_disk: int,
    timeout: float,
    state: Path | None,
) -> None:
    """Start Kafka, the schema registry, the gateway, the filters and the monitoring here.

    Returns once all is healthy; a supervisor goes on behind, and starts again what dies.

    \b
    Examples:
      nightwire up
      nightwire up --stream sim --alerts 1000 --interval 39s     a persistent test stream
      nightwire up --foreground                                  stay, for systemd and the like
      nightwire up --auth scram                                  passwords: see `nightwire user`
      nightwire up --auth scram --tls broker.example.org         other machines come in, by TLS
      nightwire up --auth scram --oidc https://auth.example.org  with tokens of that issuer, too
    """
    from nightwire.core.stack.kafka.auth import Doors
    from nightwire.core.stack.services import Stream
    from nightwire.core.stack.supervisor import Plan
    from nightwire.core.stack.up import detach, state_folder, stay

    folder = state_folder(state)
    plan = Plan(
        folder=folder,
        usual_ports=ports == "usual",
        stream=Stream(stream, alerts, f"{interval:g}s") if stream else None,
        remotes=remote,
        feeds=feed,
        site=site,
        light=light,
        jmx=jmx,
        portal=not no_portal,
        archive=archive,
        flows=not no_flows,
        doors=Doors(
            auth,
            _public(folder, host, tls_cert, tls_key),
            _issuer(oidc, oidc_audience, oidc_claim),
            local=no_tls,
            no_issuer=no_oidc,
        ),
        new_password=new_password,
        least_disk=least_disk,
    )
    raise SystemExit(stay(plan) if foreground else detach(plan, timeout))


def _public(folder: Path, host: str | None, certificate: Path | None, key: Path | None) -> "Public | None":
    """Return what `--tls` asks for; None where it is not given."""
    if host is None:
        if certificate or key:
            raise click.UsageError("--tls-cert and --tls-key go with --tls HOST")
        return None
    from nightwire.core.tls.public import public_side

    try:
        return public_side(folder / "tls", host, certificate, key)
    except (ValueError, OSError) as error:
        raise click.UsageError(str(error)) from error


def _issuer(url: str | None, audience: str, claim: str) -> "TokenIssuer | None":
    """Return what `--oidc` asks for; None where it is not given."""
    if url is None:
        if audience:
            raise click.UsageError("--oidc-audience goes with --oidc URL")
        return None
    from nightwire.core.stack.kafka.tokens import discovered

    return discovered(url, audience, claim)


@click.command()
@state_option
def down(state: Path | None) -> None:
    """Stop the embedded stack; what is in its topics stays.

    \b
    Example:
      nightwire down
    """
    from nightwire.core.stack.up import state_folder, stop

    raise SystemExit(stop(state_folder(state)))


@click.command()
@click.option("--watch", is_flag=True, help="Refresh until Ctrl-C, with rates and lag.")
@click.option("--interval", default=2.0, show_default=True, help="Time between two refreshes. [s]")
@wide_option
@json_option
@state_option
def status(watch: bool, wide: bool, interval: float, as_json: bool, state: Path | None) -> None:
    """Show processes, addresses, and what each stage read and what became of it.

    Exits 1 when no stack runs.

    \b
    Examples:
      nightwire status --watch
      nightwire status --json
    """
    from nightwire.core.stack import status as stack_status
    from nightwire.core.stack.up import state_folder

    folder = state_folder(state)
    if as_json:
        found: dict[str, Any] | None = stack_status.collect(folder)
        click.echo(json.dumps(found or {"processes": [], "endpoints": {}, "stages": []}, indent=2))
        raise SystemExit(0 if found else 1)
    raise SystemExit(stack_status.watch(folder, interval) if watch else stack_status.show(folder, wide=wide))


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come.")
@click.option("-n", "--lines", default=20, show_default=True, help="Last lines of each.")
@state_option
def logs(name: str | None, follow: bool, lines: int, state: Path | None) -> None:
    """Show the logs of the processes, or of the one called NAME.

    \b
    Examples:
      nightwire logs
      nightwire logs filters -f
    """
    from nightwire.core.stack.state import show_logs
    from nightwire.core.stack.up import state_folder

    raise SystemExit(show_logs(state_folder(state) / "logs", name, lines=lines, follow=follow))


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Check what nightwire needs on this machine, and name the command that mends what is missing.

    Exits 1 when something that is needed is missing.

    \b
    Example:
      nightwire doctor
    """
    from nightwire.core.stack.doctor import report

    raise SystemExit(report(as_json))


@click.command()
@click.option("--alerts", default=1000, show_default=True, help="Alerts of the visit.")
@click.option("--events", default=100, show_default=True, help="VOEvents that are sent.")
@state_option
def demo(alerts: int, events: int, state: Path | None) -> None:
    """Play one visit and a replay of VOEvents through everything, and show what came out.

    Starts the embedded stack where it does not run, and leaves it running.

    \b
    Example:
      nightwire demo
    """
    from nightwire.core.stack.demo import play
    from nightwire.core.stack.up import state_folder

    raise SystemExit(play(state_folder(state), alerts, events))
