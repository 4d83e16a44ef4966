"""Addresses of Kafka, the registry and the gateway: given, in the environment, or the stack's."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nightwire.core.runtime.disk import full_disk
from nightwire.schemas import MendableError

STATE_DIR = ".nightwire"
STATE_VERSION = 1
SUPERVISOR = frozenset({"nightwire.core.cli", "up", "--foreground"})
"""Words in the command line of a stack's supervisor."""


class NoStackError(MendableError):
    """There is no Kafka to talk to; the message says how to get one."""


@dataclass(frozen=True)
class Endpoints:
    """Addresses of a running nightwire.

    Attributes:
        kafka: ``HOST:PORT[,HOST:PORT…]``
        schema_registry: URL
        vtp_authors: ``HOST:PORT`` that takes VOEvents
        vtp_subscribers: ``HOST:PORT`` that gives VOEvents
        metrics: URL of each process's metrics page, by process name
        public: addresses for other machines, by the names above, and ``ca``: the file of who signs
        users: URL at which users take passwords and tokens
        tokens: URL at which an issuer gives tokens that open Kafka
        directory: URL of the directory: who is there
        archive: URL of the archive: what passed
    """

    kafka: str
    schema_registry: str | None = None
    vtp_authors: str | None = None
    vtp_subscribers: str | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)
    public: Mapping[str, str] = field(default_factory=dict)
    users: str | None = None
    tokens: str | None = None
    directory: str | None = None
    archive: str | None = None


def state_dir(start: Path | None = None) -> Path | None:
    """Return the nearest ``.nightwire/`` with a readable state file, in *start* or a parent of it.

    ``NIGHTWIRE_STATE`` names another place.
    """
    if named := os.environ.get("NIGHTWIRE_STATE"):
        return Path(named)
    here = (start or Path.cwd()).resolve()
    found = (folder / STATE_DIR for folder in [here, *here.parents])
    return next((folder for folder in found if os.access(folder / "state.json", os.R_OK)), None)


SITE = "NIGHTWIRE_SITE"
"""Names this site in the directory."""
SURVEYS = "NIGHTWIRE_SURVEYS"
"""Names the folder of descriptions of surveys of one's own."""


def use_own_surveys(state: Path | None) -> None:
    """Let this process and its children find descriptions in *state*, unless they are elsewhere."""
    if state is not None and (folder := state / "surveys").is_dir():
        os.environ.setdefault(SURVEYS, str(folder))


def read_state(folder: Path) -> dict[str, Any] | None:
    """Return the embedded stack's state file, or None where there is none."""
    try:
        state: dict[str, Any] = json.loads((folder / "state.json").read_text())
    except FileNotFoundError:
        return None
    return state


def site_name() -> str:
    """Return the name of this site: ``NIGHTWIRE_SITE``, else that of the embedded stack."""
    if named := os.environ.get(SITE):
        return named
    folder = state_dir()
    state = folder and read_state(folder)
    return (state and state.get("options", {}).get("site")) or "local"


def find_endpoints(kafka: str | None = None, schema_registry: str | None = None) -> Endpoints:
    """Return the addresses that were given, else in the environment, else the embedded stack's.

    Args:
        kafka: Bootstrap address given by option.
        schema_registry: Registry's URL given by option.

    Raises:
        NoStackError: None of the three names a Kafka.
    """
    kafka = kafka or os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    schema_registry = schema_registry or os.environ.get("NIGHTWIRE_SCHEMA_REGISTRY")
    if kafka:
        named = ("USERS", "DIRECTORY", "ARCHIVE_HTTP")
        users, directory, archive = (os.environ.get(f"NIGHTWIRE_{name}") for name in named)
        public = _public(os.environ)
        return Endpoints(
            kafka, schema_registry, public=public, users=users, directory=directory, archive=archive
        )
    folder = state_dir()
    state = read_state(folder) if folder else None
    if state is None or not _alive(state):
        raise NoStackError(
            "no Kafka: start one with `nightwire up`, or name one with --bootstrap HOST:PORT "
            f"or KAFKA_BOOTSTRAP_SERVERS{elsewhere()}"
        )
    if folder and not kafka_lives(state) and (why := full_disk(folder)):
        raise NoStackError(why)
    found = Endpoints(**_known(state["endpoints"], Endpoints.__dataclass_fields__))
    return Endpoints(**{**vars(found), "schema_registry": schema_registry or found.schema_registry})


def elsewhere() -> str:
    """Return where stacks of this user run, to be put behind a message; empty where none does."""
    found = [f"; a stack of yours runs in {folder}: NIGHTWIRE_STATE={folder}" for folder in running_stacks()]
    return "".join(found)


def running_stacks() -> list[Path]:
    """Return the state folders of the stacks that this user runs on this machine."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            ours = process.stat().st_uid == os.getuid()
            if ours and {*words} >= SUPERVISOR:
                folder = words[words.index("--state") + 1] if "--state" in words else STATE_DIR
                found.add((process / "cwd").readlink() / folder)
    return sorted(found)


def _public(env: Mapping[str, str]) -> dict[str, str]:
    """Return the addresses for other machines that are in the environment."""
    names = {
        name: f"NIGHTWIRE_PUBLIC_{name.upper()}"
        for name in ("kafka", "schema_registry", "users", "directory", "archive", "ca")
    }
    return {name: env[variable] for name, variable in names.items() if env.get(variable)}


def _known(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def _alive(state: Mapping[str, Any]) -> bool:
    """Whether the supervisor that wrote *state* still runs; its pid alone may be used again."""
    who = state["supervisor"]
    return process_started(int(who["pid"])) == int(who["started"])


def kafka_lives(state: Mapping[str, Any]) -> bool:
    """Whether the Kafka process of *state* runs; what the state says of it may be old."""
    return any(lives(one) for one in state.get("processes", ()) if one["name"] == "kafka")


def lives(process: Mapping[str, Any]) -> bool:
    """Whether a process of the state file still runs; its pid alone may be used again."""
    return bool(process["pid"]) and process_started(int(process["pid"])) == process["started"]


def process_started(pid: int) -> int | None:
    """Return when process *pid* started; None if gone or a zombie. [clock ticks since boot]"""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rsplit(")", 1)[1].split()
    return None if fields[0] == "Z" else int(fields[19])
