"""Flows: what happens to events on their way, as graphs that change while they run."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.flows.flow_follower import write_flow

__all__ = ["write_flow"]

__getattr__ = on_demand(__name__, {"write_flow": "log"})
