"""An owner's filters, by the code of `nightwire filter …`, with the owner's own rights."""

from nightwire.portal.filters.actions import EngineAnswer, FilterActions, FilterDraft
from nightwire.portal.filters.owner import Owner
from nightwire.portal.filters.trial import TrialReport

__all__ = ["EngineAnswer", "FilterActions", "FilterDraft", "Owner", "TrialReport"]
