"""Where an owner's wishes are taken: to try a filter, to submit it, to change it, to show it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import BoundedSemaphore
from typing import Any

from itsdangerous import BadData, URLSafeSerializer

from nightwire.core.presence import SiteHttpError
from nightwire.core.runtime import Endpoints
from nightwire.core.subscriptions import FlowDeniedError
from nightwire.filters.authoring import send_request, text_submission
from nightwire.filters.cli import check_url, notify_owner, read_filters
from nightwire.filters.sandbox import Strength
from nightwire.portal.filters.owner import Owner
from nightwire.portal.filters.trial import Question, Tried, tried
from nightwire.schemas.serving import KafkaAccess, Login, RefusedError, Token
from nightwire.schemas.topics import NAME, filter_topic

PATIENCE = 60.0
"""Longest wait for the engine. [s]"""
ACTIONS = ("enable", "disable", "rollback", "remove")
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
    """

    language: str
    text: str
    survey: str
    cap: int = 20
    choice: str = "first"
    notify: str = ""


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
        one = text_submission(wish.language, wish.text)
        asked = Question(
            one.language, one.source, one.entry, wish.survey, last, of_last_night,
            self.where.schema_registry, self.where.archive, self.strength,
        )  # fmt: skip
        with self._turn(owner.name):
            return tried(owner, asked)

    @contextmanager
    def _turn(self, owner: str) -> Iterator[None]:
        if owner in self._trying:
            raise RefusedError(429, "a filter of yours is being tried: wait until that is done")
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
            FilterError: It is no filter.
            NameError_: It cannot be called so.
            RefusedError: Kafka refuses, or the engine does not answer.
        """
        topic = filter_topic(owner.name, name)
        if wish.notify:
            check_url(wish.notify)
        whole = replace(
            text_submission(wish.language, wish.text), survey=wish.survey, cap=wish.cap, choice=wish.choice
        )
        done = self._asked(owner, "submit", name, whole.fields())
        if not (done.accepted and wish.notify):
            return done
        try:
            flow = owner.ask(notify_owner, owner.bootstrap, owner.name, name, topic, wish.notify)
        except (RefusedError, FlowDeniedError, SiteHttpError) as error:
            return replace(done, reasons=[*done.reasons, f"but nothing is sent to {wish.notify}: {error}"])
        said = f"sent to {wish.notify} by the flow {flow}, which ends with `nightwire flow down {flow}`"
        return replace(done, reasons=[*done.reasons, said])

    def changed(self, owner: Owner, name: str, action: str, version: int = 0) -> Outcome:
        """Enable, disable or remove a filter, or roll it back.

        Raises:
            NameError_: There is no such filter.
            RefusedError: There is no such action; Kafka refuses, or the engine does not answer.
        """
        if action not in ACTIONS:
            raise RefusedError(400, f"{action[:20]!r} is no action; there are {', '.join(ACTIONS)}")
        filter_topic(owner.name, name)
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
