"""The client that is kept for control records.  librdkafka's mock cluster."""

from uuid import uuid4

import pytest

from nightwire.core.kafka import DeliveryError, read_to_end
from nightwire.filters.delivery.producers import ControlProducer


@pytest.mark.slow
def test_a_client_is_kept_until_it_fails(bootstrap: str) -> None:
    control, topic = ControlProducer(bootstrap), f"control-{uuid4().hex}"
    for value in (b"1", b"2"):
        with control.writer() as writer:
            writer.write(topic, value)
    kept = control._producer
    with pytest.raises(DeliveryError, match=topic), control.writer() as writer:
        writer.write(topic, bytes(5 << 20))
    with control.writer() as writer:
        writer.write(topic, b"3")
    assert control._producer not in (kept, None)
    assert sorted(one.value() or b"" for one in read_to_end(bootstrap, [topic])) == [b"1", b"2", b"3"]
