"""The topics that a condition on the directory chooses: asked for, and asked for again."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

import click

from nightwire.core.presence import NobodyAnswersError, SiteHttpError, ask_directory, home_of
from nightwire.core.runtime import find_endpoints
from nightwire.schemas import MendableError

EVERY = 2.0
"""Time between two questions. [s]"""
ABSENT = 5
"""Answers in a row without a topic after which it is left; a directory that has just started knows
little yet."""
QUESTION = "SELECT DISTINCT site, topic, bootstrap FROM channels WHERE ({}\n) ORDER BY topic"
WRONG = 400
UNKNOWN = (
    "--where asks the directory, and none is known: start one with `nightwire up` or "
    "`nightwire directory serve`, or name one with NIGHTWIRE_DIRECTORY=URL"
)


class NoDirectoryError(MendableError):
    """There is no directory to ask; the message says how to get one."""


class NoTopicError(MendableError):
    """No topic is chosen."""


class TopicsWhere:
    """The topics of this site for which a condition holds; call it for those of now.

    Args:
        condition: SQL over the columns of the directory's view `channels`.
        bootstrap: Kafka's address; else that of the environment or of the running stack.
        every: Time between two questions. [s]

    Raises:
        ValueError: The directory refuses the condition; the message is its own.
        NoDirectoryError: No directory answers.
        SiteHttpError: It refuses us.
    """

    def __init__(self, condition: str, bootstrap: str | None, *, every: float = EVERY) -> None:
        self._question, self._every = QUESTION.format(condition), every
        self._where = find_endpoints(bootstrap)
        self._absent = dict[str, int]()  # answers in a row without it, by topic
        self._elsewhere, self._silent, self._leave = set[tuple[str, str]](), False, Event()
        self._note(self._ask())

    def __call__(self) -> Sequence[str]:
        return sorted(self._absent)

    @contextmanager
    def asked_again(self) -> Iterator[None]:
        """Ask again and again within the block; say on standard error which come and go."""
        thread = Thread(target=self._keep_asking, name="topics-where", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._leave.set()
            thread.join()

    def _keep_asking(self) -> None:
        while not self._leave.wait(self._every):
            try:
                self._note(self._ask())
            except (MendableError, ValueError) as error:
                if not self._silent:
                    click.echo(f"{error}; reading on", err=True)
                self._silent = True
            else:
                self._silent = False

    def _ask(self) -> set[str]:
        """Return the topics of this site; say once which of others are left out."""
        if self._where.directory is None:
            raise NoDirectoryError(UNKNOWN)
        try:
            answer = ask_directory(self._where, "POST", "/query", json={"sql": self._question})
        except NobodyAnswersError as error:
            raise NoDirectoryError(f"{error}: `nightwire directory serve` starts a directory") from error
        except SiteHttpError as error:
            raise ValueError(str(error)) if error.status == WRONG else error from None
        home = home_of(answer)
        found = {(str(row["topic"]), row["site"], row["bootstrap"]) for row in answer.json()}
        self._tell_elsewhere({(site, bootstrap) for _, site, bootstrap in found if site != home})
        return {topic for topic, site, _ in found if site == home}

    def _tell_elsewhere(self, sites: set[tuple[str, str]]) -> None:
        for site, bootstrap in sorted(sites - self._elsewhere):
            click.echo(f"left out: topics of {site}; --bootstrap {bootstrap} reads there", err=True)
        self._elsewhere |= sites

    def _note(self, found: set[str]) -> None:
        before = self._absent
        absent = dict.fromkeys(found, 0) | {one: n + 1 for one, n in before.items() if one not in found}
        self._absent = {topic: times for topic, times in absent.items() if times < ABSENT}
        for topic in sorted(self._absent.keys() - before):
            click.echo(f"chosen: {topic}", err=True)
        for topic in sorted(before.keys() - self._absent):
            click.echo(f"no longer chosen: {topic}", err=True)
