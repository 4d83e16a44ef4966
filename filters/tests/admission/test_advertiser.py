"""What live filters write is advertised, while they are live."""

from pathlib import Path
from typing import Any

import pytest

from nightwire.core.kafka import ensure_topics
from nightwire.core.runtime import Stop, now_ms
from nightwire.core.stack import Broker
from nightwire.core.subscriptions import SubscriptionFollower
from nightwire.filters.admission.advertiser import Advertiser
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.admission.service import SubmissionService
from nightwire.filters.authoring.client import Submission
from nightwire.schemas.topics import FILTERS, SUBSCRIPTIONS, settings
from tests._waiting import until

pytestmark = pytest.mark.kafka


def advertised(follower: SubscriptionFollower) -> dict[str | None, str]:
    """Return the conditions that are advertised, by topics."""
    live = follower.live(kind="advertisement")
    return {one.record["topic"]: one.record["condition"] for one in live}


def test_a_filters_condition_is_advertised_from_its_first_day_to_its_last(
    fresh_broker: Broker, tmp_path: Path
) -> None:
    kafka = fresh_broker.bootstrap  # without alerts on which it would be tried
    ensure_topics(kafka, [settings(name) for name in (FILTERS, SUBSCRIPTIONS)])
    catalog = Catalog(kafka)
    service = SubmissionService(kafka, "http://127.0.0.1:9", tmp_path, catalog)

    def ask(action: str, name: str, text: str = "", **more: Any) -> None:
        fields = Submission("sql", text, "", **more).fields() if text else {}
        about = {"id": "1", "owner": "ann", "name": name, "version": 0, "time": now_ms(), "action": action}
        accepted, _, reasons = service.reply(about | fields, "ann")  # type: ignore[arg-type]
        assert accepted, reasons

    advertiser = Advertiser(kafka, catalog, Stop())
    with SubscriptionFollower(kafka) as follower:
        ask("submit", "bright", "magnitude < 19")
        ask("submit", "other", "snr > 5", output="broker.ann.made", drop=("cutoutScience",))
        advertiser.update()
        until(lambda: advertised(follower) == {"filter.ann.bright": "magnitude < 19"})
        ask("submit", "bright", "magnitude < 18")
        advertiser.update()
        until(lambda: advertised(follower) == {"filter.ann.bright": "magnitude < 18"})
        ask("disable", "bright")
        advertiser.update()
        until(lambda: advertised(follower) == {})
    service.close()
