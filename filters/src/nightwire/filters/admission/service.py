"""Decisions about owners' requests: check, compile and try a filter, make it live."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from threading import Lock

from nightwire.core.access import may_read
from nightwire.core.catalogues import CatalogueError, CatalogueStore
from nightwire.core.kafka import ensure_topics
from nightwire.core.runtime import now_ms
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.admission.catalogue_names import is_current, keep_watchlist, watchlist_of
from nightwire.filters.admission.examination import examine, lane_remark
from nightwire.filters.admission.transform_check import (
    Request,
    surveys_of,
    transform_objections,
)
from nightwire.filters.admission.trial import AdmissionPolicy, TrialRunner
from nightwire.filters.decision.backfill_decision import BackfillJob
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.language import FilterError
from nightwire.filters.model.filter_set import milliseconds
from nightwire.filters.model.lane_choice import NEWEST, SUSPEND, LaneLoad
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.reading.recent import Sample, newest_alerts
from nightwire.filters.sandbox import Strength
from nightwire.schemas import meant, surveys
from nightwire.schemas.survey_model import MatchName
from nightwire.schemas.topics import NameError_, broker_topic, filter_topic, overflow, settings

log = logging.getLogger("nightwire.filters.requests")

Reply = tuple[bool, int, list[str]]
"""Accepted, version, reasons or remarks."""

TRANSFORM_NEEDS_SANDBOX = (
    "a transform's function runs in a sandbox alone, and this engine does without one (--sandbox none): "
    "leave fields out and add means, or ask who runs it"
)

CHOICES = ("first", "best")

PRUNED_AFTER = 30 * 86_400.0
"""So long a version of a catalogue stays that no filter needs. [s]"""

MAX_AHEAD_MS = 3_600_000
"""By how much an owner's clock may be ahead of ours. [ms]"""


@dataclass
class SubmissionService:
    """Decides about requests.

    Args:
        bootstrap: Kafka's address.
        registry: URL of the schema registry.
        schemas: Folder in which schemas are kept.
        catalog: All filters.
        policy: The operator's conditions for a filter that goes live.
        strength: Strength of the sandbox in which filters that cannot be compiled are tried.
        computes: Whether the engine has a sandbox for the functions of transforms.
        backfills: The backfills on disk; None where this engine does none.
        load: Returns what is asked of the slow lanes.
        catalogues: Those that filters may ask for; None for none.
    """

    bootstrap: str
    registry: str
    schemas: Path
    catalog: Catalog
    policy: AdmissionPolicy = field(default_factory=AdmissionPolicy)
    strength: Strength = "weak"
    computes: bool = True
    backfills: BackfillJobs | None = None
    load: Callable[[], LaneLoad] = LaneLoad
    catalogues: CatalogueStore | None = None
    _deciding: Lock = field(default_factory=Lock)

    @cached_property
    def _trials(self) -> TrialRunner:
        return TrialRunner(self.registry, self.schemas, self.policy, self.strength, self.catalogues)

    def close(self) -> None:
        """End the sandbox of the trials."""
        if "_trials" in vars(self):
            self._trials.close()
            del self._trials

    def reply(self, request: Request, owner: str) -> Reply:
        """Carry out a request that was read from the topic of *owner*.

        Raises:
            KafkaException: Kafka does not answer; ask again later.
            DeliveryError: Likewise.
        """
        if request["owner"] != owner:
            return False, 0, [f"{owner} may not ask for {request['owner']}"]
        try:
            filter_topic(owner, request["name"])
        except NameError_ as error:
            return False, 0, [str(error)]
        actions: dict[str, Callable[[Request], Reply]] = {
            "submit": self._submit, "remove": self._remove, "enable": self._enable,
            "disable": self._disable, "rollback": self._roll_back,
            "stop-backfill": self._stop_backfill,
        }  # fmt: skip
        if (action := actions.get(request["action"])) is None:
            return False, 0, [f"cannot {request['action']} a filter; can: {', '.join(sorted(actions))}"]
        try:
            with self._deciding:
                accepted, version, messages = action(request)
        except FilterError as error:
            return False, 0, error.reasons
        if accepted:
            log.info("filter %s/%s: %s, version %d", owner, request["name"], request["action"], version)
        return accepted, version, messages

    def prune(self, grace: float = PRUNED_AFTER) -> list[str]:
        """Remove the versions of catalogues that no filter has needed for so long [s]; return them.

        Raises:
            KafkaException: Kafka does not answer; nothing is removed.
        """
        if self.catalogues is None:
            return []
        with self._deciding:
            named = [MatchName.parse(m) for one in self.catalog.needed() for m in one.text_facts.matches]
            return self.catalogues.prune({(one.catalogue, one.version) for one in named}, grace)

    def _submit(self, request: Request) -> Reply:
        if reasons := self._refusals(request):
            return False, 0, reasons
        if not request["watchlist"]:
            return self._examined(request)
        if self.catalogues is None:
            return False, 0, ["this engine has no catalogues: submit it without a watchlist"]
        name, accepted = watchlist_of(request), False
        before, kept = self.catalogues.current(name), self.catalogues.kept(name)
        try:
            added = keep_watchlist(self.catalogues, request)
        except CatalogueError as error:
            return False, 0, [f"its watchlist: {error}"]
        try:
            accepted, version, messages = self._examined(request)
        finally:
            if not accepted:
                self.catalogues.go_back(name, added, before, kept=added in kept)
        return accepted, version, messages

    def _examined(self, request: Request) -> Reply:
        if not request["backfill"] and (version := self.catalog.unchanged(request, self._is_current)):
            return True, version, ["unchanged: it was live already"]
        tried = examine(request, self._samples(request), self._trials)
        if tried.refusals:
            return False, 0, [*tried.refusals]
        self._make_topics(request)
        ask = partial(self._ask_backfill, request)
        version = self.catalog.accept(request, tried.compilation, tried.cost_us, ask)
        lane = lane_remark(request["owner"], tried, self.load())
        return True, version, [*tried.remarks, lane, *_backfill_remark(request)]

    def _is_current(self, live: LiveFilter) -> bool:
        matches = live.text_facts.matches
        return not matches or (self.catalogues is not None and is_current(matches, self.catalogues))

    def _refusals(self, request: Request) -> list[str]:
        """Return the reasons for which a submission is refused before it is compiled."""
        owner, output = request["owner"], request["output"]
        if reasons := submission_objections(request, self.policy) or transform_objections(request):
            return reasons
        if request["transform"] and not self.computes:
            return [TRANSFORM_NEEDS_SANDBOX]
        if output and not may_read(self.bootstrap, owner, output):
            return [f"{owner} may not read {output}: `nightwire broker add {owner}` makes it a broker"]
        if request["backfill"] and self.backfills is None:
            return ["this engine does no backfills: submit it without --backfill"]
        return self.catalog.refusals(request)

    def _ask_backfill(self, request: Request, version: int) -> None:
        if request["backfill"] and self.backfills is not None:
            since = milliseconds(request["time"]) - request["backfill"]
            self.backfills.ask(BackfillJob(request["owner"], request["name"], version, since))

    def _stop_backfill(self, request: Request) -> Reply:
        owner, name = request["owner"], request["name"]
        version = self.backfills.stop(owner, name) if self.backfills else 0
        return _done(version, f"no backfill of {owner}/{name} runs", "its backfill ends; what is sent stays")

    def _samples(self, request: Request) -> list[Sample]:
        most = self.policy.alerts if request["trial"] else 1
        return newest_alerts(self.bootstrap, surveys_of(request), most, request["sources"])

    def _make_topics(self, request: Request) -> None:
        owner, name = request["owner"], request["name"]
        capped = [overflow(owner, name)] if request["cap"] or request["backfill"] else []
        topics = [request["output"] or filter_topic(owner, name), *capped]
        ensure_topics(self.bootstrap, [settings(topic) for topic in topics])

    def _remove(self, request: Request) -> Reply:
        owner, name = request["owner"], request["name"]
        kept = f"what had passed stays in {filter_topic(owner, name)}"
        return _done(self.catalog.remove(owner, name), f"{owner} has no filter {name}", kept)

    def _disable(self, request: Request) -> Reply:
        owner, name = request["owner"], request["name"]
        back = f"`nightwire filter enable {name}` makes it live again"
        return _done(self.catalog.stop(owner, name), f"{owner} has no live filter {name}", back)

    def _enable(self, request: Request) -> Reply:
        owner, name, version = request["owner"], request["name"], request["version"]
        absent = f"{owner} has no filter {name}{f' version {version}' if version else ''}"
        return _done(self.catalog.enable(owner, name, version), absent, "live as it was")

    def _roll_back(self, request: Request) -> Reply:
        owner, name, version = request["owner"], request["name"], request["version"]
        absent = f"{owner} has no {f'version {version}' if version else 'earlier version'} of filter {name}"
        return _done(self.catalog.roll_back(owner, name, version), absent, "live as it was")


def submission_objections(request: Request, policy: AdmissionPolicy) -> list[str]:
    """Return the objections to a submission, found without a look at its text.  Pure."""
    if request["language"] not in ("python", "sql"):
        return [f"filters are written in python or sql, not in {request['language']}"]
    if (name := request["survey"]) not in ("*", *surveys()):
        return [f"no survey {name}; there are: {', '.join(surveys())}{meant(name, surveys())}"]
    if reasons := _option_objections(request):
        return reasons
    if reasons := _backfill_objections(request, now_ms()):
        return reasons
    if request["output"] and not _own(request["output"], request["owner"]):
        return [
            f"{request['owner']} may write to broker.{request['owner']}.<stream>, not to {request['output']}"
        ]
    if not request["trial"] and not policy.untried:
        return ["this engine tries every filter: submit it without --no-trial"]
    return []


def _option_objections(request: Request) -> list[str]:
    """Return what is wrong with the cap, and with what becomes of what is late."""
    if request["choice"] not in CHOICES:
        return [f"a cap takes the alerts that come {' or '.join(CHOICES)}, not {request['choice']!r}"]
    if request["cap"] < 0:
        return [f"a cap of {request['cap']} alerts a visit is none; 0 sends all"]
    if request["behind"] not in (NEWEST, SUSPEND):
        return [f"what is too old is left out ({NEWEST}), or its filter is suspended ({SUSPEND})"]
    return []


def _backfill_objections(request: Request, now: int) -> list[str]:
    """Return what is wrong with the past that a submission asks for."""
    asked, length = milliseconds(request["time"]), request["backfill"]
    if length < 0:
        return [f"a backfill of {length} ms is none"]
    if length and asked > now + MAX_AHEAD_MS:
        return ["a backfill begins before now, and the time of this request lies in the future"]
    if length > asked:
        return [f"a backfill of {length} ms reaches before 1970"]
    return []


def _backfill_remark(request: Request) -> list[str]:
    log_of = f"`nightwire filter log {request['name']}` tells how far that is"
    return [f"its past is judged beside the stream, {log_of}"] if request["backfill"] else []


def _own(output: str, owner: str) -> bool:
    try:
        return output == broker_topic(owner, output.rpartition(".")[2])
    except NameError_:
        return False


def _done(version: int, refusal: str, remark: str) -> Reply:
    return (True, version, [remark]) if version else (False, 0, [refusal])
