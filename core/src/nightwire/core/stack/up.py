"""`nightwire up` and `down`: the embedded stack is started and stopped."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.status import Status

from nightwire.core.cli.parameter_types import spell_size
from nightwire.core.runtime import NoJavaError, StateError, install_command, java_home, missing_packages
from nightwire.core.runtime.disk import WANTED, disk_of
from nightwire.core.runtime.endpoints import STATE_DIR, state_dir
from nightwire.core.runtime.process import kill, setup_logging
from nightwire.core.stack.fetch import fetch_jars
from nightwire.core.stack.kafka.auth import NONE, SCRAM, Doors
from nightwire.core.stack.kafka.broker import BrokerError
from nightwire.core.stack.kafka.jars import JarError
from nightwire.core.stack.services import nightwire
from nightwire.core.stack.state import checked, left_over, supervisor_alive
from nightwire.core.stack.supervisor import Plan, supervise

console = Console(stderr=True, highlight=False)

OWNERS = {
    NONE: "not verified: Kafka believes everybody (`nightwire up --auth scram` asks them)",
    SCRAM: "by password; `nightwire user invite NAME` lets one in",
}
"""How owners are verified, by the kind of `--auth`."""

LEAVE = 90.0
"""Longest time for a clean stop of everything. [s]"""


def state_folder(named: Path | None) -> Path:
    """Return the state folder: *named*, else the nearest with state, else ``.nightwire`` here."""
    return (named or state_dir() or Path(STATE_DIR)).resolve()


EXTRAS = ("stack", "gateway", "filters")
"""What the stack's processes need beside the light client; with pages and flows, theirs too."""


class NotInstalledError(Exception):
    """Packages are missing; the message says how to get them."""


def check_installed(plan: Plan) -> None:
    """Do nothing where the packages are there that *plan* needs.

    Raises:
        NotInstalledError: Some are missing.
    """
    chosen = {"portal": plan.portal, "flows": plan.flows}
    extras = (*EXTRAS, *(name for name, wanted in chosen.items() if wanted))
    if missing := missing_packages(*extras):
        raise NotInstalledError(f"missing: {', '.join(missing)}. {install_command(*extras)}")


class DiskError(Exception):
    """There is too little room; the message says where, how much, and what to do."""


REFUSALS = (DiskError, NotInstalledError, StateError, BrokerError, JarError, NoJavaError)
"""Errors that a person can mend; the message says how."""


def check_disk(plan: Plan) -> None:
    """Warn where there is little room.

    Raises:
        DiskError: There is less than the plan asks for.
    """
    disk = disk_of(plan.folder)
    if disk.free < plan.least_disk:
        raise DiskError(
            f"{disk}; {spell_size(plan.least_disk)} are needed: make room, or keep the stack on another "
            "disk with --state DIR (--least-disk SIZE asks for less)"
        )
    if disk.free < WANTED:
        console.print(f"[yellow]{disk}; {spell_size(WANTED)} are wanted: without room Kafka stops[/yellow]")


def stay(plan: Plan) -> int:
    """Supervise in the foreground; return the exit status."""
    setup_logging("nightwire.stack")
    try:
        check_installed(plan)
        check_disk(plan)
        supervise(plan)
    except (*REFUSALS, TimeoutError) as error:
        console.print(f"[red]nightwire up:[/red] {error}")
        return 1
    return 0


def detach(plan: Plan, timeout: float, *, quiet: bool = False) -> int:
    """Start a supervisor behind, wait until all is healthy, and return the exit status.

    Args:
        plan: What it is to run.
        timeout: Longest wait. [s]
        quiet: Do not say where things are.
    """
    try:
        state = checked(plan.folder)
        if supervisor_alive(state):
            return _already(plan, state, quiet=quiet)
        check_installed(plan)
        check_disk(plan)
        plan.doors.after(state)
        java_home()
        fetch_jars()
    except REFUSALS as error:
        console.print(f"[red]nightwire up:[/red] {error}")
        return 1
    supervisor = _spawn(plan)
    with _spinner("starting") as status:
        failed = _await_health(plan.folder, supervisor, status, timeout)
    if not failed and not quiet:
        describe(checked(plan.folder))
    return failed


def _already(plan: Plan, state: Mapping[str, Any], *, quiet: bool) -> int:
    """Say that a stack runs, and whether it is the one that *plan* asks for; return the status."""
    other = differences(plan, state)
    if other:
        console.print(f"[red]Already running, in {plan.folder}, without {', '.join(other)}.[/red]")
        console.print("To have it so: `nightwire down`, then this again; topics and filters stay.")
        return 1
    console.print(f"Already running, in {plan.folder}; nothing was changed.")
    if not quiet:
        describe(dict(state))
    return 0


def differences(plan: Plan, state: Mapping[str, Any]) -> list[str]:
    """Return the options of *plan* that the running stack of *state* was not started with."""
    running = state.get("options", {})
    found = [
        " ".join([f"--{name}", *map(str, [] if asked is True else [asked] if name == "site" else asked)])
        for name, asked in plan.options().items()
        if asked and asked != running.get(name)
    ]
    wanted, asked = plan.doors.as_json(), {"public": "--tls", "issuer": "--oidc"}
    asked["auth"] = f"--auth {plan.doors.auth}"
    found += [asked[name] for name in asked if wanted[name] and wanted[name] != state.get(name)]
    dropped = {
        "--new-password": plan.new_password,
        "--no-tls": plan.doors.local and state.get("public"),
        "--no-oidc": plan.doors.no_issuer and state.get("issuer"),
    }
    return [*found, *(name for name, differs in dropped.items() if differs)]


def stop(where: Path) -> int:
    """Stop the stack in *where*; return the exit status."""
    state = checked(where)
    if not supervisor_alive(state):
        stray = left_over(state)
        for pid in stray:
            kill(pid)
        console.print(f"Killed {len(stray)} left over." if stray else f"Nothing runs in {where}.")
        return 0
    pid = int(state["supervisor"]["pid"])
    kill(pid, signal.SIGTERM)
    with _spinner("stopping"):
        deadline = time.monotonic() + LEAVE
        while supervisor_alive(state) and time.monotonic() < deadline:
            time.sleep(0.1)
    if supervisor_alive(state):
        console.print(f"[red]The supervisor {pid} does not leave: killed.[/red]")
        kill(pid)
        for stray_pid in left_over(checked(where)):
            kill(stray_pid)
        return 1
    console.print("Stopped.  `nightwire up` goes on where it was.")
    return 0


def describe(state: dict[str, Any]) -> None:
    """Print where everything is."""
    found = state["endpoints"]
    rows = {
        "Kafka": found["kafka"],
        "owners": OWNERS[state.get("auth", NONE)],
        "schema registry": found["schema_registry"],
        **({"portal: look at the night": found["portal"]} if "portal" in found else {}),
        "directory: who is there": found["directory"],
        **({"archive: what passed": found["archive"]} if "archive" in found else {}),
        **({"passwords and tokens": found["users"]} if "users" in found else {}),
        "VOEvents in (VTP authors)": found["vtp_authors"],
        "VOEvents out (VTP subscribers)": found["vtp_subscribers"],
        "Prometheus": found.get("prometheus", "not installed; `nightwire status --watch` shows the same"),
        "metrics pages": "  ".join(f"{name} {url}" for name, url in found["metrics"].items()),
    }
    if public := found.get("public"):
        rows["from other machines, by TLS"] = "  ".join(f"{name} {where}" for name, where in public.items())
    for what, where in rows.items():
        console.print(f"  {what:<31} {where}", soft_wrap=True)
    console.print("  nightwire status --watch | logs | down")


def _spawn(plan: Plan) -> subprocess.Popen[bytes]:
    logs = plan.folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    words = ["up", "--foreground", "--state", str(plan.folder)]
    words += ["--ports", "usual" if plan.usual_ports else "free"]
    words += ["--new-password"] if plan.new_password else []
    words += _door_words(plan.doors)
    words += ["--site", plan.site] if plan.site else []
    words += ["--light"] if plan.light else []
    words += ["--jmx"] if plan.jmx else []
    words += [] if plan.portal else ["--no-portal"]
    words += [] if plan.flows else ["--no-flows"]
    words += [] if plan.archive is None else ["--archive"] if plan.archive else ["--no-archive"]
    words += ["--least-disk", f"{plan.least_disk}B"]
    if plan.stream:
        stream = plan.stream
        words += ["--stream", stream.survey, "--alerts", str(stream.alerts), "--interval", stream.interval]
    words += [word for remote in plan.remotes for word in ("--remote", remote)]
    words += [word for feed in plan.feeds for word in ("--feed", feed)]
    with (logs / "supervisor.log").open("ab") as log:
        return subprocess.Popen(
            nightwire(*words), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def _door_words(doors: Doors) -> list[str]:
    """Return the options that ask for *doors*."""
    words = ["--auth", doors.auth] if doors.auth else []
    words += ["--no-tls"] if doors.local else []
    words += ["--no-oidc"] if doors.no_issuer else []
    if public := doors.public:
        files = ["--tls-cert", str(public.certificate), "--tls-key", str(public.key)]
        words += ["--tls", public.host, *([] if public.ca else files)]
    if issuer := doors.issuer:
        words += ["--oidc", issuer.issuer, "--oidc-audience", issuer.audience, "--oidc-claim", issuer.claim]
    return words


def _await_health(where: Path, supervisor: subprocess.Popen[bytes], status: Status, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        state = checked(where)
        mine = state.get("supervisor", {}).get("pid") == supervisor.pid
        if mine and state["ready"]:
            console.print(f"[green]All {len(state['processes'])} processes are healthy.[/green]")
            return 0
        if supervisor.poll() is not None:
            return _failed(where, state.get("failure") if mine else None)
        if mine:
            status.update("starting: " + _progress(state["processes"]))
        time.sleep(0.1)
    os.kill(supervisor.pid, signal.SIGTERM)
    supervisor.wait(LEAVE)
    return _failed(where, f"not healthy after {timeout:g} s")


def _progress(processes: list[dict[str, Any]]) -> str:
    mark = {"healthy": "[green]✓[/green]"}
    return "  ".join(f"{one['name']} {mark.get(one['state'], one['state'])}" for one in processes)


def _failed(where: Path, reason: str | None) -> int:
    console.print(f"[red]nightwire up failed:[/red] {reason or 'the supervisor ended'}")
    for log in sorted((where / "logs").glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-5:]
        console.print(str(log), style="bold", markup=False)
        console.print("\n".join(f"  {line}" for line in lines), markup=False, soft_wrap=True)
    console.print("`nightwire doctor` looks for what is missing.")
    return 1


@contextmanager
def _spinner(text: str) -> Iterator[Status]:
    with console.status(text) as status:
        yield status
