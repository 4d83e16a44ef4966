"""Filters evaluated over events: each once per event, and none for too long.

Three limits hold together.  An expression whose cost is above the limit for an event of usual size
is refused (`filters`); over an event that is so large that an expression might take longer, it is
not evaluated, and the event passes; and where filters together take too much of the gateway's time,
the costliest is switched off.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from time import thread_time
from weakref import WeakSet

from nightwire.gateway.status.metrics import GatewayMetrics
from nightwire.gateway.xpath.filters import Filter, FilterList, MeasuredDocument

MAX_VERDICTS = 200_000
"""Most verdicts that are remembered, for subscribers that come to an event later."""
MAX_DOCUMENTS = 32
"""Most events that are held parsed."""
MAX_OFF = 1000
"""Most expressions that stay refused after they were switched off."""
WINDOW = 5.0
"""How long time is added up before it is compared: of the thread that serves everybody. [s]"""
MAX_SHARE = 0.25
"""The part of it that all filters together may take."""
FAIR_COST = 0.000_5
"""An expression that takes less per event is not switched off, however many there are. [s]"""


class CostMonitor:
    """Switch off the costliest expression where all together take too much time.  Pure."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._evaluated: WeakSet[Filter] = WeakSet()

    def note(self, one: Filter, spent: float, now: float) -> Filter | None:
        """Note that *one* took *spent* [s] up to *now*; return what is switched off by that."""
        self._evaluated.add(one)
        one.evaluations += 1
        one.spent += spent
        self._began = now - spent if self._began is None else self._began
        return self._costliest(now) if now - self._began >= WINDOW else None

    def _costliest(self, now: float) -> Filter | None:
        filters = list(self._evaluated)
        share = sum(one.spent for one in filters) / (now - (self._began or 0.0))
        costly = [one for one in filters if one.spent > FAIR_COST * one.evaluations]
        found = max(costly, key=lambda one: one.spent, default=None) if share > MAX_SHARE else None
        if found is not None:
            each = 1000 * found.spent / found.evaluations
            found.off = f"it took {each:.2g} ms per event, and all filters {share:.0%} of the gateway's time"
        for one in filters:
            one.evaluations, one.spent = 0, 0.0
        self._evaluated.clear()
        self._began = None
        return found


class FilterEvaluator:
    """Evaluate filters, and remember the verdicts.

    Args:
        metrics: The process's metrics.
    """

    def __init__(self, metrics: GatewayMetrics) -> None:
        self._metrics, self._costs = metrics, CostMonitor()
        self._verdicts: OrderedDict[Hashable, dict[str, bool]] = OrderedDict()
        self._documents: OrderedDict[Hashable, MeasuredDocument] = OrderedDict()
        self._off: deque[Filter] = deque(maxlen=MAX_OFF)
        self._verdict_count = 0

    def matches(self, filters: FilterList, event: Hashable, document: bytes) -> bool:
        """Say whether *document*, which *event* identifies, matches any of *filters*."""
        active = filters.active() if filters.filters else ()
        if not active:
            return True
        verdicts = self._verdicts.get(event)
        if verdicts is None:
            verdicts = self._verdicts[event] = {}
        return any(self._verdict(one, verdicts, event, document) for one in active)

    def _verdict(self, one: Filter, verdicts: dict[str, bool], event: Hashable, document: bytes) -> bool:
        known = verdicts.get(one.text)
        if known is None:
            known = verdicts[one.text] = self._evaluate(one, self._document(event, document))
            self._verdict_count += 1
            while self._verdict_count > MAX_VERDICTS and len(self._verdicts) > 1:
                self._verdict_count -= len(self._verdicts.popitem(last=False)[1])
        return known

    def _evaluate(self, one: Filter, document: MeasuredDocument) -> bool:
        if not one.can_afford(document):
            self._metrics.filters.labels("unjudged").inc()
            return True
        began = thread_time()
        passes = one.matches(document.root)
        ended = thread_time()
        if (costliest := self._costs.note(one, ended - began, ended)) is not None:
            self._off.append(costliest)
            self._metrics.filters.labels("off").inc()
        return passes

    def _document(self, event: Hashable, document: bytes) -> MeasuredDocument:
        found = self._documents.get(event)
        if found is None:
            found = self._documents[event] = MeasuredDocument(document)
            if len(self._documents) > MAX_DOCUMENTS:
                self._documents.popitem(last=False)
        return found
