"""What readers make of alerts."""

from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.workers.alerts.reader import TWENTY_COLUMNS
from nightwire.schemas import Codec, sim_alert_schema


def test_the_twenty_columns_are_there() -> None:
    codec = Codec(sim_alert_schema())
    batch = codec.columns([codec.encode(alert) for alert in make_pool(3)], TWENTY_COLUMNS)
    assert (batch.num_rows, batch.num_columns) == (3, 20)
