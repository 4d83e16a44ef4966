"""Real alerts of Rubin and ZTF, reduced: each is read as before, without stamps and history."""

from pathlib import Path

import pytest
from confluent_kafka import Message

from nightwire.core.congestion import Level, Reduction
from nightwire.schemas import AlertDecoder, Codec, SchemaRegistry, survey
from nightwire.schemas.wire import frame, read_container

pytestmark = pytest.mark.data


class OneSchema:
    """Knows one schema, under any id."""

    def __init__(self, known: Codec) -> None:
        self.known = known

    def codec(self, _schema_id: int) -> Codec:
        return self.known


@pytest.mark.parametrize("name", ["lsst", "ztf"])
def test_they_lose_stamps_and_history_alone(data: Path, name: str) -> None:
    described = survey(name).description
    stamps = {path.partition(".")[0] for path in described.stamps.values()}
    history = {one.path for one in described.history}
    for value, decoder in alerts(data, name):
        whole = decoder.decode(value).alert
        one = Message(topic=f"alerts.{name}", partition=0, offset=0, value=value, timestamp=(1, 0))
        for level, gone in ((Level.STAMPLESS, stamps), (Level.LITE, stamps | history)):
            (less,) = Reduction(decoder)(level, [one])
            found = decoder.decode(less.value() or b"")
            assert found.alert == whole | dict.fromkeys(gone & whole.keys())
            assert len(found.body) < len(decoder.decode(value).body)


def alerts(data: Path, name: str) -> list[tuple[bytes, AlertDecoder]]:
    """Return messages as their survey sends them, and what decodes them."""
    if name == "ztf":
        found = [path.read_bytes() for path in sorted((data / "alerts/ztf").rglob("*.avro"))[:5]]
        return [(value, AlertDecoder(SchemaRegistry(None))) for value in found]
    records = list(read_container((data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()))
    decoder = AlertDecoder(OneSchema(Codec(records[0].schema)))
    return [(frame(1100, one.body), decoder) for one in records[:20]]
