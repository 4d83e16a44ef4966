"""Real alerts through `nightwire ingest`: the same Avro bodies out as in."""

import os
import tarfile
from pathlib import Path

import pytest

from nightwire.core.stack import Broker
from nightwire.producer.replay.schema_ids import schemas_in
from nightwire.schemas import AlertDecoder, SchemaRegistry, survey
from nightwire.schemas.wire import frame, read_container, unframe
from producer.tests.ingest.survey_kafka import Ingest, SurveyKafka

pytestmark = [pytest.mark.kafka, pytest.mark.data]

DAMAGED = b"Obj\x01 and then nothing of the kind"


@pytest.fixture
def theirs(broker: Broker) -> tuple[SurveyKafka, str]:
    """Return a survey's Kafka (here the same as ours), and a topic in it."""
    one, topic = SurveyKafka(broker.bootstrap), f"theirs-{os.urandom(3).hex()}"
    one.make(topic)
    return one, topic


def mirroring(name: str, theirs: tuple[SurveyKafka, str], kafka: str, registry: str, folder: Path) -> Ingest:
    """Return how *theirs* is mirrored."""
    one, topic = theirs
    source = f"data-{os.urandom(3).hex()}"
    return Ingest(name, source, one.address, kafka, registry, folder, words=["--topic", topic])


def ztf_messages(data: Path) -> list[bytes]:
    """Return real ZTF messages of all schema versions there are, those in archives too."""
    folder = data / "alerts" / "ztf"
    found = [path.read_bytes() for path in sorted(folder.rglob("*.avro"))]
    for archive in sorted(folder.rglob("*.tar.gz")):
        with tarfile.open(archive) as opened:
            files = (opened.extractfile(one) for one in opened if one.name.endswith(".avro"))
            found += [file.read() for file in files if file is not None]
    return found


def test_real_containers_keep_their_bodies_and_a_damaged_one_is_named(
    theirs: tuple[SurveyKafka, str], kafka: str, registry_url: str, data: Path, tmp_path: Path
) -> None:
    messages = ztf_messages(data)
    theirs[0].send(theirs[1], [(value, n % 2) for n, value in enumerate([*messages, DAMAGED])])
    ztf = mirroring("ztf", theirs, kafka, registry_url, tmp_path)
    status, counts, log = ztf.to_the_end()
    assert (status, counts["delivered"], counts["dead_lettered"]) == (1, len(messages), 1), log
    records = [one for value in messages for one in read_container(value)]
    key = survey("ztf").key
    found = ztf.mirrored()
    sent = sorted((key(one.record), one.body) for one in records)
    assert sorted((message.key(), unframe(message.value() or b"")[1]) for message in found) == sent
    (dead_letter,) = ztf.dead_letters()
    assert dead_letter.value() == DAMAGED
    with SchemaRegistry(registry_url, cache_dir=tmp_path / "fresh") as schemas:
        decoder = AlertDecoder(schemas)
        candids = sorted(decoder.decode(message.value() or b"").alert["candid"] for message in found)
    assert candids == sorted(one.record["candid"] for one in records)


def test_real_rubin_alerts_and_a_captured_message_keep_every_byte(
    theirs: tuple[SurveyKafka, str], kafka: str, registry_url: str, data: Path, tmp_path: Path
) -> None:
    folder = data / "alerts" / "lsst"
    with SchemaRegistry(registry_url, cache_dir=tmp_path / "survey") as schemas:
        for version, schema_id in (("9.0", 900), ("11.0", 1100)):
            (schema,) = schemas_in(folder / "schema" / version)
            schemas.register(f"theirs-{version}-value", schema, schema_id=schema_id)
    container = (folder / "rubin_real_v11_0.avro").read_bytes()
    messages = [frame(1100, one.body) for one in read_container(container)]
    messages += [path.read_bytes() for path in sorted(folder.rglob("*.cwf"))]
    theirs[0].send(theirs[1], [(value, n % 2) for n, value in enumerate(messages)])
    lsst = mirroring("lsst", theirs, kafka, registry_url, tmp_path)
    status, counts, log = lsst.to_the_end()
    assert (status, counts["delivered"]) == (0, len(messages)), log
    assert sorted(message.value() or b"" for message in lsst.mirrored()) == sorted(messages)
