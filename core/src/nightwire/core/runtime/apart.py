"""A question asked in a process of its own: bounded in time and memory, whatever it is given.

The process has none of our secrets, and dies with us.
"""

import json
import logging
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nightwire.core.runtime.process import clean_environment, die_with_parent

log = logging.getLogger("nightwire.apart")

COMMAND = (sys.executable, "-P", "-c", f"from {__name__} import main; main()")
KEPT = "NIGHTWIRE_SURVEYS", "NIGHTWIRE_STATE", "NIGHTWIRE_PRIVATE_HOSTS"
"""Settings of ours that it knows: no secrets."""


class ApartError(Exception):
    """The process took more than its bounds, or ended badly; the message says which."""


@dataclass(frozen=True)
class Bounds:
    """What the process may take; one beneath it that sets bounds of its own may take more.

    Attributes:
        wall_s: Time by the clock. [s]
        memory: Address space, of which most is never touched. [byte]
        cpu_s: Time of the CPU. [s]
    """

    wall_s: float
    memory: int
    cpu_s: int = resource.RLIM_INFINITY


def ask_apart(bounds: Bounds, question: Callable[..., Any], *asked: Any, **variables: str) -> Any:
    """Return the answer to *question*; it, what is *asked* and the answer are as JSON has them.

    Args:
        bounds: What it may take.
        question: A function of a module.
        asked: Its arguments.
        variables: Of its environment, beside those that are no secrets.

    Raises:
        ApartError: It takes too long or too much, or ends badly.
    """
    limits = {resource.RLIMIT_AS: bounds.memory, resource.RLIMIT_CPU: bounds.cpu_s, resource.RLIMIT_CORE: 0}
    named = (question.__module__, question.__name__)
    told = json.dumps([os.getpid(), [*limits.items()], *named, asked]).encode()
    known = clean_environment(os.environ) | {name: os.environ[name] for name in KEPT if name in os.environ}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(COMMAND, env=known | variables, start_new_session=True, **pipes) as child:
        try:
            out, complaint = child.communicate(told, bounds.wall_s)
        except subprocess.TimeoutExpired as error:
            raise ApartError(f"this was not done within {bounds.wall_s:g} s") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    if child.returncode:
        log.warning("%s.%s ended badly: %s", *named, complaint[-2000:].decode(errors="replace"))
        raise ApartError("this ended badly: it takes too much time or memory")
    return json.loads(out)


def main() -> None:
    """Ask what standard input says; print the answer."""
    die_with_parent()
    parent, limits, module, name, asked = json.loads(sys.stdin.buffer.read())
    for kind, most in limits:
        if most != resource.RLIM_INFINITY:
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
    if os.getppid() == parent:  # else it died before we asked to die with it
        sys.stdout.write(json.dumps(getattr(import_module(module), name)(*asked)))
