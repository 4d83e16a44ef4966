"""`nightwire channel serve`, with a real Kafka: two at once, of which one is killed."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from nightwire.core.channels import ChannelMapping
from nightwire.core.kafka import ensure_topics
from nightwire.core.subscriptions import Registrar
from nightwire.multicast.channel_admin import channels_of
from nightwire.schemas.topics import CHANNELS, SUBSCRIPTIONS, settings
from tests._multicast import write_alerts
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC, BRIGHT, FAINT = "alerts.sim", "diaSource.psfFlux > 1000", "diaSource.psfFlux < 20"
VERB = "from nightwire.multicast.channel_commands import channel; channel()"
WORDS = ["serve", TOPIC, "--groups", "239.255.77.0/24:45120", "--every", "1s", "--age", "1s",
         "--make", "1B", "--keep", "1B"]  # fmt: skip


@contextmanager
def serving(log: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one until the block ends."""
    with log.open("ab") as file:
        child = subprocess.Popen([sys.executable, "-c", VERB, *WORDS, *more], stdout=file, stderr=file)
        try:
            yield child
        finally:
            child.kill()
            child.wait()


def carried(kafka: str) -> dict[str, ChannelMapping]:
    """Return the planner's channels that have a group, by condition."""
    found = channels_of(kafka, TOPIC)
    return {one.condition: one for one in found if one.automatic and one.group is not None}


def test_what_is_wanted_gets_a_channel_as_long_as_it_is_wanted(
    kafka: str, registry_url: str, tmp_path: Path
) -> None:
    ensure_topics(kafka, [settings(name) for name in (TOPIC, CHANNELS, SUBSCRIPTIONS)])
    write_alerts(kafka, TOPIC, range(1, 90), flux=500.0)
    for flux in (10.0, 5000.0):
        write_alerts(kafka, TOPIC, range(100, 110), flux=flux)
    where = ("--bootstrap", kafka, "--registry", registry_url)
    with ExitStack() as exits:
        told = Registrar(kafka)
        told.start()
        exits.callback(told.close)
        told.subscribe("test.bright", TOPIC, BRIGHT)
        first = exits.enter_context(serving(tmp_path / "first", *where))
        until(lambda: [*carried(kafka)] == [BRIGHT])
        second = exits.enter_context(serving(tmp_path / "second", *where))
        told.subscribe("test.faint", TOPIC, FAINT)
        until(lambda: carried(kafka).keys() == {BRIGHT, FAINT})
        first.kill()
        assert len({one.group for one in carried(kafka).values()}) == 2
        kept = carried(kafka)[FAINT].group
        told.unsubscribe("test.bright")
        until(lambda: [one.condition for one in channels_of(kafka, TOPIC) if one.automatic] == [FAINT])
        assert carried(kafka)[FAINT].group == kept  # both may have made it at once, to the same group
        second.send_signal(signal.SIGTERM)
        assert second.wait(30) == 0
