"""A source's channels begin and end."""

from confluent_kafka import Message

from nightwire.core.channels import LOCAL_DELIVERY, ChannelCopies

NOBODY = "127.0.0.1:1"
MEGABYTE = bytes(1 << 20)


def test_what_waits_to_be_judged_is_bounded_with_its_keys_and_headers() -> None:
    copies = ChannelCopies(NOBODY, "alerts.sim", "sim", None)
    for _ in range(100):
        copies.delivered(Message(topic="alerts.sim", key=MEGABYTE, value=b""), [("image", MEGABYTE)])
    assert copies.lost == 68


def test_who_closes_twice_takes_out_no_other_writer() -> None:
    one, other = (ChannelCopies(NOBODY, "alerts.sim", "sim", None) for _ in range(2))
    for each in (one, other):
        each.start()
    one.close()
    one.close()
    assert LOCAL_DELIVERY.writes(NOBODY, "alerts.sim")
    other.close()
    assert not LOCAL_DELIVERY.writes(NOBODY, "alerts.sim")
