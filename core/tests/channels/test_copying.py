"""A source's channels begin and end."""

from nightwire.core.channels import WRITTEN_HERE, ChannelCopies

NOBODY = "127.0.0.1:1"


def test_who_closes_twice_takes_out_no_other_writer() -> None:
    one, other = (ChannelCopies(NOBODY, "alerts.sim", "sim", None) for _ in range(2))
    for each in (one, other):
        each.start()
    one.close()
    one.close()
    assert WRITTEN_HERE.writes(NOBODY, "alerts.sim")
    other.close()
    assert not WRITTEN_HERE.writes(NOBODY, "alerts.sim")
