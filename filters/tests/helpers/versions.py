"""A filter that is changed while alerts come in: one version judges each alert, and the log says
which.
"""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

Site = Any

FIRST, MOST, SOME, VERSIONS = 30_000, 10_000, 20, 3
"""The first alert's id, and the most ids; so many alerts at a time; versions of the filter."""

PAUSE = 0.1
"""Between some alerts and the next ones. [s]"""

OUTPUT = "broker.me.changed"
"""Where all alerts go: a community broker's filter may pass as much as it likes."""

LIVE = re.compile(r"version (\d+): live from batch")
FROM = re.compile(r"alerts\.sim\[(\d+)\] from offset (\d+)")


class Stream:
    """Alerts that come in until it is ended.

    Args:
        site: Where to.
        encode: Makes one.
    """

    def __init__(self, site: Site, encode: Callable[..., bytes]) -> None:
        self._site, self._encode = site, encode
        self._over, self.end = threading.Event(), FIRST
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def stop(self) -> int:
        """Let it end; return the id after the last one."""
        self._over.set()
        self._thread.join()
        return self.end

    def _write(self) -> None:
        while not self._over.wait(PAUSE):
            numbers = range(self.end, self.end + SOME)
            self._site.write("alerts.sim", {str(one).encode(): self._encode(one, 1.0) for one in numbers})
            self.end += SOME


def check_changes(site: Site, encode: Callable[..., bytes], until: Callable[..., Any]) -> None:
    """Change a filter under a stream of alerts, all of which pass; look who judged which."""
    submit(site, 1)
    stream = Stream(site, encode)
    try:
        for version in range(1, VERSIONS + 1):
            if version > 1:
                submit(site, version)
            until(lambda version=version: version in {int(one["version"]) for one in copies(site)})
    finally:
        end = stream.stop()
    until(lambda: len(copies(site)) >= end - FIRST, 60, lambda: site.log.read_text()[-3000:])
    found = copies(site)
    # none lost, none twice
    assert sorted(int(one["alert"]) for one in found) == list(range(FIRST, end))
    check_boundaries(dict(live_notices(site)), found)


def submit(site: Site, version: int) -> None:
    """Make another version live."""
    code = f"def keep(alert):\n    return {FIRST - version} < alert.id < {FIRST + MOST}\n"
    done = site.submit("changed", code, "--survey", "sim", "--cap", "0", "--output", OUTPUT)
    assert f"is live in version {version}" in done.stdout, done.stderr


def copies(site: Site) -> list[dict[str, str]]:
    """Return the headers of what passed."""
    return [{name: value.decode() for name, value in one.headers()} for one in site.read(OUTPUT)]


def check_boundaries(firsts: dict[int, dict[int, int]], found: list[dict[str, str]]) -> None:
    """Look whether each version judged from where its owner was told to where the next one's part
    begins.

    Args:
        firsts: The first offset of each version, by partition; of those that had alerts in its
            first batch.
        found: Headers of all copies.
    """
    judged: dict[int, dict[int, int]] = defaultdict(dict)
    for one in found:
        judged[int(one["partition"])][int(one["offset"])] = int(one["version"])
    for versions in judged.values():
        in_order = [versions[offset] for offset in sorted(versions)]
        assert in_order == sorted(in_order)
    assert [*firsts] == list(range(1, VERSIONS + 1))
    for version, of in firsts.items():
        for partition, first in of.items():
            by = judged[partition].items()
            assert all((judge >= version) == (offset >= first) for offset, judge in by), (version, partition)


def live_notices(site: Site) -> Iterator[tuple[int, dict[int, int]]]:
    """Yield each version that went live, and from which offsets on, as `filter log` tells its
    owner.
    """
    for line in site.nightwire("filter", "log", "changed").stdout.splitlines():
        if went_live := LIVE.search(line):
            yield int(went_live[1]), {int(part): int(at) for part, at in FROM.findall(line)}
