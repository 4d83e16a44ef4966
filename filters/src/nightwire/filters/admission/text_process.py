"""A filter's text is read and compiled in a process of its own, once, when it is submitted.

No code of the owner's runs there: the limits are for what a parser does with a text that was made
for it.  Whatever happens to the process, the filter is refused, and nobody else notices.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from nightwire.filters.language import AskedFields, FilterError, Program
from nightwire.filters.model.compilation import Compilation, compile_request

CPU_S = 10
"""CPU time. [s]"""

WALL_S = 25.0
"""Time by the clock. [s]"""

MEMORY_MB = 1024
"""Address space. [MiB]"""

PARTS = ("language", "source", "entry", "survey", "transform")
"""The fields of a request that are text, or say how it is read."""

KEPT = ("NIGHTWIRE_SURVEYS",)
"""Variables of our environment that the process has: no secrets."""

COMMAND = (sys.executable, "-I", "-c", f"from {__name__} import main; main()")

TOO_MUCH = (
    f"this text is too much for the compiler: it may take {CPU_S} s of CPU time and {MEMORY_MB:,} MiB "
    "of memory, and no more depth than Python has"
)


class CompilerBusyError(FilterError):
    """The machine had no time for the compiler: the same text may be compiled later."""


def compile_apart(request: Mapping[str, Any]) -> Compilation:
    """Return the compilation of *request*, made in a process of its own.

    Raises:
        FilterError: It is no filter, or more than the limits allow.
        CompilerBusyError: Ask again later.
    """
    asked = json.dumps({part: request[part] for part in PARTS}).encode()
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    try:
        done = subprocess.run(
            COMMAND, input=asked, capture_output=True, timeout=WALL_S, env=environment, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise CompilerBusyError(f"this text was not compiled within {WALL_S:g} s") from error
    if done.returncode:
        raise FilterError(TOO_MUCH)
    return _loaded(json.loads(done.stdout))


def compile_function(source: str, entry: str, survey: str, transform: str = "") -> Compilation:
    """Return the compilation of a text of Python; the same text is read once.

    Args:
        source: The text.
        entry: Its function.
        survey: Whose alerts.
        transform: The function that computes what is added; empty for none.

    Raises:
        FilterError: It is no filter, or more than the limits allow; the reasons name its lines.
    """
    found = _outcome(source, entry, survey, transform)
    if isinstance(found, Compilation):
        return found
    raise FilterError(*found)


@lru_cache(1000)
def _outcome(source: str, entry: str, survey: str, transform: str) -> Compilation | tuple[str, ...]:
    asked = {"language": "python", "source": source, "entry": entry, "survey": survey, "transform": transform}
    try:
        return compile_apart(asked)
    except CompilerBusyError:
        raise  # which is not kept, unlike all other refusals
    except FilterError as error:
        return tuple(error.reasons)


def _loaded(answer: Mapping[str, Any]) -> Compilation:
    if answer["refused"]:
        raise FilterError(*answer["refused"])
    program = Program.loads(answer["program"]) if answer["program"] else None
    asked = AskedFields(**answer["asked"])
    return Compilation(program, tuple(answer["remarks"]), answer["facts"], asked, answer["over_columns"])


def main() -> None:
    """Compile the request on standard input; print the compilation, or why it is refused."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB << 20, MEMORY_MB << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(json.dumps(_answer(json.loads(sys.stdin.buffer.read()))))


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        made = compile_request(request)
    except FilterError as error:
        return {"refused": error.reasons}
    except (RecursionError, MemoryError):
        return {"refused": [TOO_MUCH]}
    except Exception as error:  # noqa: BLE001 - our compiler fails: the owner may write it otherwise
        return {"refused": [f"this text cannot be compiled: {type(error).__name__}: {error}"]}
    found = {"program": made.text, "remarks": made.remarks, "facts": made.facts, "asked": asdict(made.asked)}
    return {"refused": [], **found, "over_columns": made.over_columns}
