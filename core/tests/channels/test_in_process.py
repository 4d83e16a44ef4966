"""What waits for a reader in the process that writes."""

from confluent_kafka import Message

from nightwire.core.channels import RecordQueue
from nightwire.core.channels.in_process import LocalDelivery

PLACE = "127.0.0.1:1", "alerts.sim"
MEGABYTE = bytes(1 << 20)


def test_a_mailbox_is_bounded_by_all_that_its_records_hold() -> None:
    here, queue = LocalDelivery(), RecordQueue()
    here.attach(PLACE[0], PLACE[1:], queue)
    for number in range(100):
        record = Message(topic=PLACE[1], offset=number, key=MEGABYTE, value=b"")
        here.deliver(PLACE, record, [("image", MEGABYTE)])
    assert [one.offset() for one in queue.take(20, 0)] == [*range(20)]
    here.deliver(PLACE, Message(topic=PLACE[1], offset=100, key=MEGABYTE), ())
    assert [one.offset() for one in queue.take(100, 0)] == [*range(20, 31), 100]
