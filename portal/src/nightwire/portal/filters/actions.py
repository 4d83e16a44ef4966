"""Where an owner's wishes are taken: to try a filter, to submit it, to change it, to show it."""

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
from nightwire.portal.filters.apart import apart
from nightwire.portal.filters.owner import Owner
from nightwire.portal.filters.trial import Question, Tried, tried
from nightwire.schemas.serving import KafkaAccess, Login, RefusedError, Token
from nightwire.schemas.topics import NAME, filter_topic

PATIENCE = 60.0
"""Longest wait for the engine. [s]"""
ACTIONS = ("enable", "disable", "rollback", "remove", "backfill", "stop-backfill")
AT_ONCE = 2
"""Trials that run at once, each of another owner: each may take a core."""


@dataclass(frozen=True)
class Wish:
    """A filter as the page's form, or a program, writes it.

    Attributes:
        language: ``python`` or ``sql``.
        text: The filter.
        survey: Whose alerts it judges.
        cap: Most alerts a visit; 0 for all.
        choice: Which ones: the ``first``, or the ``best``.
        notify: Where each alert that passes is posted or mailed to; empty for nowhere.
        entry: The function; empty: the only one, or ``keep``.
        columns: Columns that are its arguments.
        transform: The function that computes what is added; empty for none.
        output: Where alerts go in place of the filter's own topic: a community broker's stream.
        drop: Fields that are left out there.
        means: Fields of which a mean is added.
        lite: Whether stamps and histories are left out.
        sources: Topics that are judged in place of the survey's.
        behind: What becomes of it where the slow lane cannot keep up.
        since: From when on its past is judged; empty for none.
        targets: A file of targets, near which alerts are asked about; empty for none.
        file: Its name.
        radius: How near. [arcsec]
        target_columns: Columns of it that go along; none for all.
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
        """Return what it asks of an alert.

        Raises:
            FilterError: It is no filter.
        """
        return text_submission(self.language, self.text, self.entry, self.transform, self.columns)


@dataclass(frozen=True)
class Outcome:
    """The engine's answer.

    Attributes:
        accepted: Whether it was done.
        version: Which version is meant.
        reasons: Why not; else remarks.
    """

    accepted: bool
    version: int
    reasons: list[str]


@dataclass(frozen=True)
class FilterActions:
    """Takes wishes.

    Attributes:
        where: The site's addresses.
        access: Says who is who.
        secret: Signs links to texts; whoever knows it can make one.
        strength: Of the sandbox.
    """

    where: Endpoints
    access: KafkaAccess
    secret: str
    strength: Strength = "strong"
    _running: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(AT_ONCE))
    _trying: set[str] = field(default_factory=set)

    def owner(self, login: Login | Token) -> Owner:
        """Return who signed in.

        Raises:
            RefusedError: 403: owners have other names.
        """
        if not NAME.fullmatch(login.name):
            raise RefusedError(403, f"{login.name[:60]} is no owner of filters: these have names like ann-2")
        return Owner.of(login, self.access, self.where.kafka)

    def tried(self, owner: Owner, wish: Wish, last: int, *, of_last_night: bool) -> Tried:
        """Try a filter on alerts of its survey.

        Raises:
            FilterError: It is no filter, or takes too long.
            RefusedError: Others are being tried, or Kafka refuses.
        """
        with self._turn(owner.name):
            one, remark = self._asked_of(owner, TRIED, wish)
            asked = Question(
                one.language, one.source, one.entry, wish.survey, last, of_last_night,
                self.where.schema_registry, self.where.archive, self.strength, one.watchlist.decode(),
            )  # fmt: skip
            found = tried(owner, asked)
        return replace(found, remarks=[*found.remarks, *remark])

    @contextmanager
    def _turn(self, owner: str) -> Iterator[None]:
        if owner in self._trying:
            raise RefusedError(429, "a filter of yours is being looked at: wait until that is done")
        self._trying.add(owner)
        try:
            if not self._running.acquire(timeout=10.0):
                raise RefusedError(429, f"{AT_ONCE} filters are being tried: try yours again in a minute")
            try:
                yield
            finally:
                self._running.release()
        finally:
            self._trying.discard(owner)

    def submitted(self, owner: Owner, name: str, wish: Wish) -> Outcome:
        """Submit a filter; where that is wished, let its owner know what passes.

        Raises:
            FilterError: It is no filter, or has no targets.
            NameError_: It cannot be called so.
            RefusedError: Kafka refuses, or the engine does not answer.
        """
        topic = wish.output or filter_topic(owner.name, name)
        if wish.notify:
            check_url(wish.notify)
        asked, remarks = self._submission(owner, name, wish)
        done = self._asked(owner, "submit", name, asked.fields())
        done = replace(done, reasons=[*done.reasons, *remarks])
        if not (done.accepted and wish.notify):
            return done
        try:
            flow = owner.ask(notify_owner, owner.bootstrap, owner.name, name, topic, wish.notify)
            why = owner.ask(doubt, self.where, wish.notify)
        except (RefusedError, FlowDeniedError, SiteHttpError) as error:
            return replace(done, reasons=[*done.reasons, f"but nothing is sent to {wish.notify}: {error}"])
        said = f"goes to {wish.notify} by the flow {flow}, which ends with `nightwire flow down {flow}`"
        return replace(done, reasons=[*done.reasons, said, *([f"but {why}"] if why else [])])

    def _submission(self, owner: Owner, name: str, wish: Wish) -> tuple[Submission, list[str]]:
        """Return what is sent of a wish, and remarks on its targets."""
        with self._turn(owner.name) if wish.targets else nullcontext():
            asked, remarks = self._asked_of(owner, name, wish)
        whole = shaped(
            asked, wish.survey, wish.drop, wish.means, lite=wish.lite, cap=wish.cap,
            choice=wish.choice, sources=wish.sources, output=wish.output, behind=wish.behind,
            backfill=length_since(wish.since, now_ms()) if wish.since else 0,
        )  # fmt: skip
        return whole, remarks

    def _asked_of(self, owner: Owner, name: str, wish: Wish) -> tuple[Submission, list[str]]:
        """Return what a wish asks of an alert, its targets too, and remarks on these."""
        if not wish.targets:
            return wish.submission(), []
        asked = wish.submission() if wish.text.strip() else None
        with TemporaryDirectory() as folder:
            file = Path(folder) / (re.sub(r"[^\w.-]", "_", wish.file)[-60:].strip(".") or "targets")
            file.write_bytes(wish.targets)
            text, remark = apart(targets_in, str(file), list(wish.target_columns))
        near = near_targets(asked, f"{owner.name}/{name}", wish.radius, text.encode())
        return near, [remark] if remark else []

    def said(self, owner: Owner, whose: str, name: str, text: str) -> None:
        """Let an owner say something about a filter.

        Raises:
            RefusedError: 422: that is no comment; Kafka refuses or does not answer.
        """
        self._commented(owner, write_comment, whose, name, text)

    def taken_back(self, owner: Owner, comment: str) -> None:
        """Let an owner take back what he said.

        Raises:
            RefusedError: 422: he did not; Kafka refuses or does not answer.
        """
        self._commented(owner, take_back, comment)

    def _commented(self, owner: Owner, how: Callable[..., object], *what: str) -> None:
        try:
            owner.ask(how, owner.bootstrap, owner.name, *what)
        except CommentError as error:
            raise RefusedError(422, str(error)) from error

    def changed(self, owner: Owner, name: str, action: str, version: int = 0, since: str = "") -> Outcome:
        """Enable, disable or remove a filter, roll it back, or judge its past since some time.

        Raises:
            FilterError: That is no time, or the filter is not live.
            NameError_: There is no such filter.
            RefusedError: There is no such action; Kafka refuses, or the engine does not answer.
        """
        if action not in ACTIONS:
            raise RefusedError(400, f"{action[:20]!r} is no action; there are {', '.join(ACTIONS)}")
        filter_topic(owner.name, name)
        if action == "backfill":
            fields = owner.ask(past_again, owner.bootstrap, owner.name, name, since)
            return self._asked(owner, "submit", name, fields)
        return self._asked(owner, action, name, {"version": version})

    def _asked(self, owner: Owner, action: str, name: str, fields: dict[str, Any]) -> Outcome:
        answer = owner.ask(
            send_request, owner.bootstrap, action, owner.name, name, timeout=PATIENCE, **fields
        )
        return Outcome(answer["accepted"], answer["version"], list(answer["reasons"]))

    def link(self, owner: str, name: str, version: int) -> str:
        """Return what opens the text of one version to whoever has it."""
        return str(self._links.dumps([owner, name, version]))

    def linked(self, link: str) -> tuple[str, str, int, str]:
        """Return owner, name, version and text of what a link opens.

        Raises:
            RefusedError: 404: it opens nothing.
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


def targets_in(file: str, columns: Sequence[str]) -> tuple[str, str]:
    """Return the targets in a file, which a stranger made, as CSV, and a remark: apart from us.

    Raises:
        FilterError: It is no watchlist.
    """
    text, remark = watchlist_text(Path(file), Columns(kept=tuple(columns)))
    return text.decode(), remark
