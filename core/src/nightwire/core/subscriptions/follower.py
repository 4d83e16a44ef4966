"""The follower of the topic `subscriptions`."""

from nightwire.core.kafka import TableFollower
from nightwire.core.subscriptions.table import LiveInterest, SubscriptionTable
from nightwire.schemas.topics import SUBSCRIPTIONS


class SubscriptionFollower(TableFollower[SubscriptionTable]):
    """Follows the interests in the Kafka at *bootstrap*, within a ``with`` block.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
    """

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap, SUBSCRIPTIONS, SubscriptionTable)

    def live(self, topic: str | None = None, kind: str = "subscription") -> list[LiveInterest]:
        """Return the interests of *kind* in *topic*, or in any, that hold now."""
        with self._changed:
            return [*self._table.live(topic, kind)]
