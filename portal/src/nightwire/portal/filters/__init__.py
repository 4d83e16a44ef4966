"""An owner's filters, asked for as he is: what `nightwire filter …` does, by the same code."""

from nightwire.portal.filters.actions import FilterActions, Outcome, Wish
from nightwire.portal.filters.owner import Owner
from nightwire.portal.filters.trial import Tried

__all__ = ["FilterActions", "Outcome", "Owner", "Tried", "Wish"]
