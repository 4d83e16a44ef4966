"""What `nightwire replay` writes is copied to the channels of its topic."""

from pathlib import Path

import fastavro
import pytest

from nightwire.core.kafka import headers_of, read_to_end
from nightwire.multicast.channel_admin import make_channel, remove_channel
from nightwire.producer.cli.run_replay import run_replay
from nightwire.producer.replay.replay import Pace, Replay
from nightwire.producer.visits.visit_topic import REPLAY_HEADER
from nightwire.schemas import sim_alert_schema
from nightwire.schemas.topics import channel
from tests._channels import SIM, TOPIC, WIDER, alert

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_once_a_replay_knows_its_channels_it_copies_what_meets_their_conditions(
    kafka: str, registry_url: str, tmp_path: Path
) -> None:
    with (tmp_path / "some.avro").open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema({**sim_alert_schema()}), map(alert, range(800)))
    make_channel(kafka, TOPIC, "replayed", WIDER)
    job = Replay("sim", [tmp_path / "some.avro"], Pace(rate=200.0))
    run_replay(job, (kafka, registry_url), as_json=True)
    remove_channel(kafka, TOPIC, "replayed")
    found = [one for one in read_to_end(kafka, [channel(TOPIC, "replayed")]) if one.value()]
    assert all(headers_of(one)[REPLAY_HEADER] for one in found)
    numbers = {SIM.known.decode((one.value() or b"")[5:])["diaSourceId"] - 1 for one in found}
    assert numbers
    assert numbers == {one for one in range(min(numbers), 800) if one % 100 >= 80}
