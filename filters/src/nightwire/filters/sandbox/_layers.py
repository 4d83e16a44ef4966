"""Which layers there are here: found by putting them up around a process that does nothing else."""

import json
import os
import subprocess
import sys

from nightwire.filters.sandbox._contract import Limits, SandboxError
from nightwire.filters.sandbox._seccomp import CHANNEL
from nightwire.filters.sandbox._walls import LAYERS, raise_walls

PROBE = "from nightwire.filters.sandbox._layers import probe; probe()"
PROBE_S = 60.0


def layers() -> dict[str, str | None]:
    """Return, for each layer of containment, None where it is there, else why it is not.

    Raises:
        SandboxError: It cannot be found out.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", PROBE], env={}, capture_output=True, timeout=PROBE_S, check=False
        )
        missing = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise SandboxError(f"the layers of the sandbox cannot be tried: {error}") from error
    return {layer: missing.get(layer) for layer in LAYERS}


def probe() -> None:
    """Put up the walls around this process, and say which could not be; it can do nothing else afterwards."""
    os.dup2(1, CHANNEL)
    missing = raise_walls(Limits(), os.getppid())
    os.write(CHANNEL, json.dumps(missing).encode())
    os._exit(0)
