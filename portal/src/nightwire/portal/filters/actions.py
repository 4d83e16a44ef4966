"""An owner's actions on filters: try, submit, comment, change, share."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore
from typing import Any

from itsdangerous import BadData, URLSafeSerializer

from nightwire.core.catalogues import Columns
from nightwire.core.presence import SiteHttpError
from nightwire.core.runtime import Endpoints, now_ms
from nightwire.core.subscriptions import FlowDeniedError
from nightwire.filters.authoring import (
    TRIED,
    Submission,
    length_since,
    near_targets,
    send_request,
    shaped,
    text_submission,
    watchlist_text,
)
from nightwire.filters.cli import (
    CommentError,
    check_url,
    doubt,
    notify_owner,
    past_again,
    read_filters,
    take_back,
    write_comment,
)
from nightwire.filters.sandbox import Strength
from nightwire.portal.filters.child_process import call_in_child
from nightwire.portal.filters.owner import Owner
from nightwire.portal.filters.trial import TrialReport, TrialRequest, run_trial
from nightwire.schemas.serving import KafkaAccess, Login, RefusedError, Token
from nightwire.schemas.topics import NAME, filter_topic

TIMEOUT = 60.0
"""Longest wait for the engine. [s]"""
ACTIONS = ("enable", "disable", "rollback", "remove", "backfill", "stop-backfill")
MAX_TRIALS = 2
"""Trials that run at once, each of another owner; one may take a core."""


@dataclass(frozen=True)
class FilterDraft:
    """A filter that has not been submitted yet, as a form or the API gives it.

    Attributes:
        language: ``python`` or ``sql``.
        text: The filter.
        survey: Of the alerts that it judges.
        cap: Most alerts a visit; 0 for all.
        choice: Which alerts, where more pass: the ``first``, or the ``best``.
        notify: URL to which each alert that passes is posted or mailed; empty for none.
        entry: The filter's function; empty: the only one, or ``keep``.
        columns: Columns that are its arguments.
        transform: The function that computes added fields; empty for none.
        output: A community broker's stream, in place of the filter's own topic.
        drop: Fields that are left out of the output.
        means: Fields of which a mean is added.
        lite: Whether stamps and histories are left out.
        sources: Topics that are judged in place of the survey's.
        behind: What the engine does with a filter that falls behind in the slow lane.
        since: Begin of the backfill; empty for none.
        targets: Bytes of a file of targets, near which alerts must lie; empty for none.
        file: Name of that file.
        radius: Around each target. [arcsec]
        target_columns: Columns of the file that are added to alerts; empty for all.
    """

    language: str
    text: str
    survey: str
    cap: int = 20
    choice: str = "first"
    notify: str = ""
    entry: str = ""
    columns: Sequence[str] = ()
    transform: str = ""
    output: str = ""
    drop: Sequence[str] = ()
    means: Sequence[str] = ()
    lite: bool = False
    sources: Sequence[str] = ()
    behind: str = "newest"
    since: str = ""
    targets: bytes = b""
    file: str = ""
    radius: float = 2.0
    target_columns: Sequence[str] = ()

    def submission(self) -> Submission:
        """Return the filter's condition as a submission.

        Raises:
            FilterError: The text is no filter.
        """
        return text_submission(self.language, self.text, self.entry, self.transform, self.columns)


@dataclass(frozen=True)
class EngineAnswer:
    """The engine's answer to a request.

    Attributes:
        accepted: Whether it was carried out.
        version: The version that it concerns.
        reasons: Why it was refused; else remarks.
    """

    accepted: bool
    version: int
    reasons: list[str]


@dataclass(frozen=True)
class FilterActions:
    """Carries out owners' actions.

    Attributes:
        where: The site's addresses.
        access: Kafka's authentication.
        secret: Key that signs links to texts.
        strength: Of the sandbox.
    """

    where: Endpoints
    access: KafkaAccess
    secret: str
    strength: Strength = "strong"
    _running: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(MAX_TRIALS))
    _trying: set[str] = field(default_factory=set)

    def owner(self, login: Login | Token) -> Owner:
        """Return the owner with these credentials.

        Raises:
            RefusedError: 403: the name is no owner's.
        """
        if not NAME.fullmatch(login.name):
            raise RefusedError(403, f"{login.name[:60]} is no owner of filters: these have names like ann-2")
        return Owner.of(login, self.access, self.where.kafka)

    def try_filter(self, owner: Owner, draft: FilterDraft, last: int, *, of_last_night: bool) -> TrialReport:
        """Try a filter on *last* alerts of its survey.

        Raises:
            FilterError: The draft is no filter, or takes too long.
            RefusedError: 429: too many trials are running; or Kafka refuses.
        """
        with self._trial_slot(owner.name):
            one, remarks = self._submission_of(owner, TRIED, draft)
            request = TrialRequest(
                one.language, one.source, one.entry, draft.survey, last, of_last_night,
                self.where.schema_registry, self.where.archive, self.strength, one.watchlist.decode(),
            )  # fmt: skip
            report = run_trial(owner, request)
        return replace(report, remarks=[*report.remarks, *remarks])

    @contextmanager
    def _trial_slot(self, owner: str) -> Iterator[None]:
        if owner in self._trying:
            raise RefusedError(429, "a filter of yours is being looked at: wait until that is done")
        self._trying.add(owner)
        try:
            if not self._running.acquire(timeout=10.0):
                raise RefusedError(429, f"{MAX_TRIALS} filters are being tried: try yours again in a minute")
            try:
                yield
            finally:
                self._running.release()
        finally:
            self._trying.discard(owner)

    def submit(self, owner: Owner, name: str, draft: FilterDraft) -> EngineAnswer:
        """Submit a filter, with a flow for notifications where the draft has ``notify``.

        Raises:
            FilterError: The draft is no filter, or its targets cannot be read.
            NameError_: *name* is not valid.
            RefusedError: Kafka refuses, or the engine does not answer.
        """
        topic = draft.output or filter_topic(owner.name, name)
        if draft.notify:
            check_url(draft.notify)
        asked, remarks = self._shaped(owner, name, draft)
        done = self._request(owner, "submit", name, asked.fields())
        done = replace(done, reasons=[*done.reasons, *remarks])
        if not (done.accepted and draft.notify):
            return done
        try:
            flow = owner.ask(notify_owner, owner.bootstrap, owner.name, name, topic, draft.notify)
            why = owner.ask(doubt, self.where, draft.notify)
        except (RefusedError, FlowDeniedError, SiteHttpError) as error:
            return replace(done, reasons=[*done.reasons, f"but nothing is sent to {draft.notify}: {error}"])
        flowing = f"goes to {draft.notify} by the flow {flow}, which ends with `nightwire flow down {flow}`"
        return replace(done, reasons=[*done.reasons, flowing, *([f"but {why}"] if why else [])])

    def _shaped(self, owner: Owner, name: str, draft: FilterDraft) -> tuple[Submission, list[str]]:
        """Return the submission with cap, sources and output, and remarks on its targets."""
        with self._trial_slot(owner.name) if draft.targets else nullcontext():
            asked, remarks = self._submission_of(owner, name, draft)
        whole = shaped(
            asked, draft.survey, draft.drop, draft.means, lite=draft.lite, cap=draft.cap,
            choice=draft.choice, sources=draft.sources, output=draft.output, behind=draft.behind,
            backfill=length_since(draft.since, now_ms()) if draft.since else 0,
        )  # fmt: skip
        return whole, remarks

    def _submission_of(self, owner: Owner, name: str, draft: FilterDraft) -> tuple[Submission, list[str]]:
        """Return the condition of a draft with its targets, and remarks on these."""
        if not draft.targets:
            return draft.submission(), []
        asked = draft.submission() if draft.text.strip() else None
        with TemporaryDirectory() as folder:
            file = Path(folder) / (re.sub(r"[^\w.-]", "_", draft.file)[-60:].strip(".") or "targets")
            file.write_bytes(draft.targets)
            text, remark = call_in_child(read_targets, str(file), list(draft.target_columns))
        near = near_targets(asked, f"{owner.name}/{name}", draft.radius, text.encode())
        return near, [remark] if remark else []

    def comment(self, owner: Owner, whose: str, name: str, text: str) -> None:
        """Write an owner's comment on a filter of *whose*.

        Raises:
            RefusedError: 422: the text is no comment; Kafka refuses or does not answer.
        """
        self._change_comments(owner, write_comment, whose, name, text)

    def take_back(self, owner: Owner, comment: str) -> None:
        """Take back an owner's comment, by its id.

        Raises:
            RefusedError: 422: it is not his; Kafka refuses or does not answer.
        """
        self._change_comments(owner, take_back, comment)

    def _change_comments(self, owner: Owner, change: Callable[..., object], *arguments: str) -> None:
        try:
            owner.ask(change, owner.bootstrap, owner.name, *arguments)
        except CommentError as error:
            raise RefusedError(422, str(error)) from error

    def change(self, owner: Owner, name: str, action: str, version: int = 0, since: str = "") -> EngineAnswer:
        """Carry out one of `ACTIONS`: a rollback is to *version*, a backfill from *since* on.

        Raises:
            FilterError: *since* is no time, or the filter is not live.
            NameError_: There is no such filter.
            RefusedError: 400: no such action; Kafka refuses, or the engine does not answer.
        """
        if action not in ACTIONS:
            raise RefusedError(400, f"{action[:20]!r} is no action; there are {', '.join(ACTIONS)}")
        filter_topic(owner.name, name)
        if action == "backfill":
            fields = owner.ask(past_again, owner.bootstrap, owner.name, name, since)
            return self._request(owner, "submit", name, fields)
        return self._request(owner, action, name, {"version": version})

    def _request(self, owner: Owner, action: str, name: str, fields: dict[str, Any]) -> EngineAnswer:
        answer = owner.ask(send_request, owner.bootstrap, action, owner.name, name, timeout=TIMEOUT, **fields)
        return EngineAnswer(answer["accepted"], answer["version"], list(answer["reasons"]))

    def sign_link(self, owner: str, name: str, version: int) -> str:
        """Return the signed link by which anybody may read one version's text."""
        return str(self._links.dumps([owner, name, version]))

    def open_link(self, link: str) -> tuple[str, str, int, str]:
        """Return owner, name, version and text of a signed link's filter.

        Raises:
            RefusedError: 404: the link is not valid, or there is no such version.
        """
        try:
            owner, name, version = self._links.loads(link)
        except (BadData, ValueError) as error:
            raise RefusedError(404, "this link opens nothing (any more)") from error
        record = read_filters(self.where.kafka).versions.get((owner, name, version))
        if record is None:
            raise RefusedError(404, f"there is no version {version} of {owner}/{name}")
        return owner, name, version, record["source"]

    @property
    def _links(self) -> URLSafeSerializer:
        return URLSafeSerializer(self.secret, "shared filter")


def read_targets(file: str, columns: Sequence[str]) -> tuple[str, str]:
    """Return the targets in a file as CSV, and a remark or none; in the child.

    Raises:
        FilterError: The file is no watchlist.
    """
    text, remark = watchlist_text(Path(file), Columns(kept=tuple(columns)))
    return text.decode(), remark
