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
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from nightwire.core.runtime import clean_environment, die_with_parent
from nightwire.filters.language import FilterError
from nightwire.schemas import MendableError
from nightwire.schemas.serving import RefusedError

log = logging.getLogger("nightwire.portal")

WALL_S = 90.0
"""Time by the clock. [s]"""
MEMORY = 6 << 30
"""Address space, of which most is never touched. [byte]"""
COMMAND = (sys.executable, "-c", f"from {__name__} import main; main()")


def apart(question: Callable[..., Any], *asked: Any, **variables: str) -> Any:
    """Return the answer to *question*; it, what is *asked* and the answer are as JSON has them.

    Args:
        question: A function of a module of ours.
        asked: Its arguments.
        variables: Of its environment, beside those that are no secrets.

    Raises:
        FilterError: It raises that, or takes too long.
        RefusedError: It raises that.
    """
    told = json.dumps([os.getpid(), question.__module__, question.__name__, asked]).encode()
    known = clean_environment(os.environ) | {
        name: os.environ[name] for name in ("NIGHTWIRE_SURVEYS", "NIGHTWIRE_STATE") if name in os.environ
    }
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(COMMAND, env=known | variables, start_new_session=True, **pipes) as child:
        try:
            out, complaint = child.communicate(told, WALL_S)
        except subprocess.TimeoutExpired as error:
            raise FilterError(f"this was not done within {WALL_S:g} s: try it on fewer alerts") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    if child.returncode:
        log.warning("a process ended badly: %s", complaint[-2000:].decode(errors="replace"))
        raise FilterError("it ended badly: this text, file, or these alerts, take too much memory")
    return _answered(json.loads(out))


def _answered(answer: Mapping[str, Any]) -> Any:
    if answer["status"]:
        raise RefusedError(answer["status"], answer["reasons"][0])
    if answer["reasons"]:
        raise FilterError(*answer["reasons"])
    return answer["found"]


def main() -> None:
    """Ask what standard input says; print the answer, or why it is refused."""
    die_with_parent()
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))  # the sandbox sets its own
    parent, module, name, asked = json.loads(sys.stdin.buffer.read())
    if os.getppid() != parent:  # it died before we asked to die with it
        return
    answer: dict[str, Any] = {"reasons": [], "status": 0}
    try:
        answer["found"] = getattr(import_module(module), name)(*asked)
    except RefusedError as error:
        answer |= {"reasons": [str(error)], "status": error.status}
    except FilterError as error:
        answer["reasons"] = error.reasons
    except MendableError as error:
        answer["reasons"] = [str(error)]
    sys.stdout.write(json.dumps(answer))
