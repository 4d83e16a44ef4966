"""What all curves stand on: one Kafka, the engine, the gateway; each is started when it is asked for."""

from dataclasses import replace
from functools import cached_property

from nightwire.benchmarks._scenario import Context
from nightwire.benchmarks.dmtn._play import Player
from nightwire.benchmarks.gateway._fleet import Fleet
from nightwire.benchmarks.growth._passes import Judging


class Ground:
    """One Kafka and what runs on it; `close` ends all of it.

    Args:
        context: Of the run.
        light: Run the engine without Spark.
    """

    def __init__(self, context: Context, *, light: bool = False) -> None:
        self._context = context
        self.engine = Judging(context, light=light)
        self._running: list[Fleet | Player] = []

    @cached_property
    def fleet(self) -> Fleet:
        """The gateway."""
        self._running.append(fleet := Fleet(self._there))
        return fleet

    @cached_property
    def player(self) -> Player:
        """What moves visits."""
        self._running.append(player := Player(self._there))
        return player

    def close(self) -> None:
        """End everything, Kafka last."""
        for one in self._running:
            one.close()
        self.engine.close()

    @property
    def _there(self) -> Context:
        return replace(self._context, bootstrap=self.engine.bootstrap)
