"""Each connection is an open file, and the usual limit, 1024, is soon reached."""

import logging
import resource

log = logging.getLogger(__name__)

OTHERS = 256
"""What is open besides connections: Kafka's, the index, handlers."""


def allow_open_files(connections: int) -> None:
    """Raise this process's limit to so many *connections*, as far as the machine allows."""
    wanted = connections + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    given = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (given, hard))
    if given < wanted:
        log.warning(
            "only %d files may be open, so at most %d connections: raise `ulimit -n`",
            given,
            given - OTHERS,
        )
