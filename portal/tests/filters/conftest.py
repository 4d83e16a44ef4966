"""One stack for all tests of owners' pages: a Kafka with passwords, a registry, an engine."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from directory.tests.page.browser import Browser
from nightwire.core.kafka import Writer, ensure_topics, environment, producer
from nightwire.core.runtime import clean_environment
from nightwire.core.stack import free_port
from nightwire.directory.model import View
from nightwire.schemas.serving import KafkaAccess
from nightwire.schemas.topics import settings
from portal.tests.sample import HOSTILE, SIM, Served, message, serving, sim_alert
from tests._directory import directory_of
from tests._guarded_broker import Guarded, guarded_broker, speaking_as
from tests._serving import verb
from tests._waiting import until

ALERTS = 300
"""Alerts of the night; one in fifty is bright."""
PASSWORDS = {name: f"{name}'s own password" for name in ("ann", "bob", "olga")}


@dataclass(frozen=True)
class Site:
    """The stack, and a portal of it."""

    guarded: Guarded
    registry: str
    served: Served

    @contextmanager
    def browsing(self, name: str) -> Iterator[httpx.Client]:
        """Yield a client that is signed in as *name*."""
        with httpx.Client(base_url=self.served.url, timeout=120, follow_redirects=True) as http:
            done = sign_in(http, name, PASSWORDS[name])
            assert done.url.path == "/filters", done.text
            yield http


def token_in(page: str) -> str:
    """Return the token of the first form in *page*."""
    return page.partition('name="token" value="')[2].partition('"')[0]


def sign_in(http: httpx.Client, name: str, password: str, **more: str) -> httpx.Response:
    """Fill in the form; return what comes."""
    token = token_in(http.get("/sign-in?next=/filters").text)
    form = {"token": token, "name": name, "password": password, "next": "/filters", **more}
    return http.post("/sign-in", data=form)


def follow(browser: Browser, condition: str) -> None:
    """Wait until *condition*, in JavaScript, holds on this page or the one it leads to."""
    until(lambda: _holds(browser, condition), condition, 120)


def _holds(browser: Browser, condition: str) -> bool:
    try:
        return bool(browser.evaluate(f"!!({condition})"))
    except AssertionError:  # it went to the next page while it was asked
        return False


def write_night(bootstrap: str) -> None:
    """Write the alerts of a night, with stamps and histories; the last one means harm."""
    writer = Writer(producer(bootstrap))
    for number in range(1, ALERTS + 1):
        flux = 36_310.0 if number % 50 == 0 else 363.1 + number
        alert = sim_alert(number, history=3, psfFlux=flux, psfFluxErr=36.3)
        writer.write(SIM, message(alert), partition=0, headers=[("survey", b"sim")])
    alert = sim_alert(ALERTS + 50, psfFlux=36_310.0, psfFluxErr=36.3, band=HOSTILE)
    writer.write(SIM, message(alert), partition=0, headers=[("survey", b"sim")])
    writer.flush()


@contextmanager
def running(folder: Path, guarded: Guarded, port: int, *words: str) -> Iterator[None]:
    """Run a verb of the operator's, which listens on *port*, within the block."""
    env = {**clean_environment(os.environ), **environment(dict(guarded.keys))}
    log = folder / f"{words[0]}.log"
    with verb(log, *words, "--bootstrap", guarded.bootstrap, port=port, env=env, cwd=folder):
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yield the stack, with its night and two owners."""
    folder = tmp_path_factory.mktemp("owners")
    with ExitStack() as stack:
        guarded = stack.enter_context(guarded_broker(folder / "kafka"))
        stack.enter_context(speaking_as(guarded.keys))
        topics = ("visits", "filters", "accounts", "dead-letters", "_schemas", "flows", "directory", SIM)
        ensure_topics(guarded.bootstrap, [settings(name) for name in topics])
        for name, password in PASSWORDS.items():
            assert guarded.run("user", "add", name, password=password).exit_code == 0
        write_night(guarded.bootstrap)
        registry, engine = free_port(), free_port()
        stack.enter_context(running(folder, guarded, registry, "schema", "serve", "--port", str(registry)))
        url = f"http://127.0.0.1:{registry}"
        words = ("filter", "run", "--light", "--registry", url, "--state", str(folder / "state"))
        stack.enter_context(running(folder, guarded, engine, *words, "--metrics-port", str(engine)))
        access = KafkaAccess({**guarded.keys, "bootstrap.servers": guarded.bootstrap})
        stack.callback((view := View()).close)
        directory = stack.enter_context(directory_of(view, guarded.bootstrap, access))
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("NIGHTWIRE_DIRECTORY", directory)
        served = stack.enter_context(serving(guarded.bootstrap, access=access, registry=url))
        yield Site(guarded, url, served)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield a page in Chromium."""
    with Browser(tmp_path_factory.mktemp("chromium")) as one:
        yield one
