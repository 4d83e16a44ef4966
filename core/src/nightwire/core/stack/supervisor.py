"""The supervisor: starts the stack in order, keeps each process alive, and takes all with it."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from nightwire.core.kafka import admin, ensure_topics
from nightwire.core.runtime import process_started
from nightwire.core.runtime.disk import LEAST, full_disk
from nightwire.core.runtime.endpoints import SITE, use_own_surveys
from nightwire.core.runtime.ports import choose
from nightwire.core.runtime.process import kill
from nightwire.core.stack.kafka.auth import SCRAM, Doors, client_listener, listener_properties, unlock
from nightwire.core.stack.kafka.broker import Broker, agent_options
from nightwire.core.stack.kafka.listeners import Listener, listening
from nightwire.core.stack.kafka.principals import NOBODY, let_in, new_passwords
from nightwire.core.stack.kafka.public_listener import LIMITS, PublicListener
from nightwire.core.stack.kafka.tokens import ALLOWED, IssuerKeys, TokenIssuer, tokens_listener
from nightwire.core.stack.process_restarts import Health, ManagedProcess
from nightwire.core.stack.services import (
    TOKEN_KEY,
    Service,
    Stream,
    has_archive,
    has_prometheus,
    port_names,
    services,
    stream_service,
)
from nightwire.core.stack.state import holding, left_over, write_state
from nightwire.core.stack.topics import broker_properties, stack_topics
from nightwire.core.tls.token_key import AUDIENCE, ISSUER, public_keys, token_key

log = logging.getLogger("nightwire.stack")

PUBLIC_SCHEMES = {
    "kafka": "",
    "schema_registry": "https://",
    "users": "https://",
    "directory": "https://",
    "portal": "https://",
    "archive": "https://",
    "vtp_authors": "tls://",
    "vtp_subscribers": "tls://",
}
"""What other machines reach, and what stands before its address."""
RENEWAL_INTERVAL = 2.0
"""Time between two looks for renewed certificates. [s]"""
KEYS_INTERVAL = 60.0
"""Time between two questions for an issuer's keys. [s]"""


@dataclass(frozen=True)
class Plan:
    """What a stack is to run.

    Attributes:
        folder: Its state.
        usual_ports: Whether to try the well-known ports first.
        stream: A persistent test stream.
        remotes: VTP brokers to subscribe to.
        feeds: Filter topics for VTP subscribers.
        site: This site's name in the directory; empty for that of last time.
        light: Whether the filters run without Spark.
        jmx: Whether Kafka tells Prometheus about itself.
        portal: Whether there are pages to look at.
        archive: Whether alerts are archived; None: where the packages are there, but for those of a
            test stream.
        flows: Whether a worker runs flows.
        doors: By which clients come in.
        new_password: Whether the stack's own processes get another password.
        least_disk: Free space below which it does not start. [byte]
    """

    folder: Path
    usual_ports: bool = True
    stream: Stream | None = None
    remotes: Sequence[str] = field(default_factory=tuple)
    feeds: Sequence[str] = field(default_factory=tuple)
    site: str = ""
    light: bool = False
    jmx: bool = False
    portal: bool = True
    archive: bool | None = None
    flows: bool = True
    doors: Doors = field(default_factory=Doors)
    new_password: bool = False
    least_disk: int = LEAST

    def options(self) -> dict[str, Any]:
        """Return the options of `nightwire up` that say what runs, as JSON has them."""
        stream = self.stream and [self.stream.survey, self.stream.alerts, self.stream.interval]
        return {
            "stream": stream, "remote": list(self.remotes), "feed": list(self.feeds),
            "light": self.light, "jmx": self.jmx, "no-portal": not self.portal, "site": self.site,
            "archive": self.archive is True, "no-archive": self.archive is False,
            "no-flows": not self.flows,
        }  # fmt: skip

    @property
    def archives(self) -> bool:
        """Whether alerts are archived."""
        return (self.stream is None and has_archive()) if self.archive is None else self.archive


def supervise(plan: Plan) -> None:
    """Run the stack of *plan* until SIGTERM or Ctrl-C.

    Raises:
        FolderInUseError: A stack runs there already.
        StateError: The state folder is of another version.
        BrokerError: Kafka could not be prepared.
    """
    with holding(plan.folder) as before:
        (plan.folder / "surveys").mkdir(exist_ok=True)
        use_own_surveys(plan.folder)
        for pid in left_over(before):
            log.warning("killing process %d, left over by a supervisor that died", pid)
            kill(pid)
        plan = replace(plan, site=plan.site or before.get("options", {}).get("site", ""))
        if plan.site:
            os.environ[SITE] = plan.site
        asyncio.run(Supervisor(plan, before).run())


class Supervisor:
    """One run of the stack."""

    def __init__(self, plan: Plan, before: Mapping[str, Any]) -> None:
        self._plan = plan
        self._doors = plan.doors.after(before)
        public, guarded = self._doors.public, self._doors.auth == SCRAM
        wanted = {
            "jmx": plan.jmx, "portal": plan.portal, "archive": plan.archives, "flows": plan.flows,
        }  # fmt: skip
        names = port_names(plan.stream, public=public is not None, guarded=guarded, **wanted)
        self._ports = choose(names, before.get("ports", {}), usual=plan.usual_ports)
        kafka = plan.folder / "kafka"
        issuer = self._doors.issuer
        self._issuer_keys = IssuerKeys(issuer, kafka / "issuer.jwks.json") if issuer else None
        self._public_listener = (
            PublicListener(public, kafka, self._ports["public_kafka"], self._tokens) if public else None
        )
        self._following: list[asyncio.Task[None]] = []
        self._users: Mapping[str, Mapping[str, str]] = {}
        self._logs = plan.folder / "logs"
        self._logs.mkdir(exist_ok=True)
        self._children: list[ManagedProcess] = []
        self._ready = False
        self._failure: str | None = None
        self._http = httpx.AsyncClient(timeout=2.0)

    async def run(self) -> None:
        """Start everything, wait for a signal, stop everything."""
        leave = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, leave.set)
        starting = asyncio.create_task(self._start())
        leaving = asyncio.create_task(leave.wait())
        try:
            await asyncio.wait([starting, leaving], return_when=asyncio.FIRST_COMPLETED)
            if starting.done() and (error := starting.exception()) is not None:
                self._failure = str(error) or type(error).__name__
                self._write()
                raise error
            await leaving
        finally:
            starting.cancel()
            await self._stop()
            await self._http.aclose()

    async def _start(self) -> None:
        broker = Broker(
            self._plan.folder / "kafka",
            port=self._ports["kafka"],
            controller=self._ports["controller"],
            properties=broker_properties(self._plan.stream) | self._listeners(),
            options=self._java_options(),
        )
        await asyncio.to_thread(broker.prepare)
        kafka = Service("kafka", broker.command(), ready_timeout=120.0, stop_timeout=20.0)
        probe = KafkaProbe(broker.bootstrap)
        hold = partial(full_disk, self._plan.folder)
        await self._run(kafka, lambda: asyncio.to_thread(probe.answers), hold)
        await asyncio.to_thread(ensure_topics, broker.bootstrap, stack_topics(self._plan.stream))
        plan = self._plan
        if self._doors.auth == SCRAM:
            self._users = await asyncio.to_thread(let_in, admin(broker.bootstrap), new_passwords())
        rest = services(
            plan.folder,
            self._ports,
            remotes=plan.remotes,
            feeds=plan.feeds,
            light=plan.light,
            public=self._doors.public,
        )
        await asyncio.gather(*(self._run(service, self._health(service)) for service in rest))
        if self._plan.stream:
            stream = stream_service(self._plan.stream, self._ports)
            await self._run(stream, self._health(stream))
        self._follow(broker.bootstrap)
        self._ready = True
        self._write()
        log.info("all %d processes are healthy", len(self._children))

    @property
    def _tokens(self) -> dict[str, object]:
        """Settings by which an issuer's tokens are judged; empty without an issuer."""
        issuer, keys = self._doors.issuer, self._issuer_keys
        return issuer.settings(keys.path) if issuer and keys else {}

    def _listeners(self) -> dict[str, object]:
        """Return Kafka's settings of authentication; with any, use the stack's credentials."""
        if self._doors.auth != SCRAM:
            log.warning(
                "owners are not verified: Kafka believes everybody; `nightwire up --auth scram` asks them"
            )
            return {}
        own = unlock(self._plan.folder, renew=self._plan.new_password)
        if self._issuer_keys:
            self._issuer_keys.prepare()
        others = [self._own_tokens(), *([self._public_listener.listener()] if self._public_listener else [])]
        client = client_listener(self._ports["kafka"], self._tokens)
        found = listener_properties(own["sasl.password"]) | (LIMITS if self._public_listener else {})
        return found | listening(client, self._ports["controller"], others)

    def _own_tokens(self) -> Listener:
        """Return the listener for tokens that the site signs; its key is made the first time."""
        keys = self._plan.folder / "kafka" / "tokens.jwks.json"
        keys.parent.mkdir(parents=True, exist_ok=True)
        keys.write_text(public_keys(token_key(self._plan.folder / TOKEN_KEY)))
        return tokens_listener(self._ports["tokens"], TokenIssuer(ISSUER, audience=AUDIENCE), keys)

    def _java_options(self) -> list[str]:
        """Return options of Kafka's Java: its metrics, and where keys of tokens lie."""
        kafka = self._plan.folder / "kafka"
        keys = ",".join((kafka / f"{name}.jwks.json").as_uri() for name in ("tokens", "issuer"))
        metrics = agent_options(self._ports["kafka_metrics"]) if self._plan.jmx else ()
        return [*metrics, f"-D{ALLOWED}={keys}"]

    def _follow(self, bootstrap: str) -> None:
        """Let Kafka use each renewed certificate, and each new key of an issuer."""
        if listener := self._public_listener:
            kafka = admin(bootstrap)
            self._following.append(
                asyncio.create_task(_repeat(RENEWAL_INTERVAL, lambda: listener.follow(kafka)))
            )
        if keys := self._issuer_keys:
            self._following.append(asyncio.create_task(_repeat(KEYS_INTERVAL, keys.follow)))

    async def _run(
        self, service: Service, health: Health, hold: Callable[[], str | None] = lambda: None
    ) -> None:
        child = ManagedProcess(self._as_user(service), self._logs, health, self._write, hold)
        self._children.append(child)
        try:
            await child.start()
        except TimeoutError as error:
            raise TimeoutError(
                f"{service.name} did not become healthy in {service.ready_timeout:g} s"
            ) from error

    def _as_user(self, service: Service) -> Service:
        """Return *service* with credentials of its own, where Kafka asks for any, and told of the
        addresses for other machines.
        """
        public = {f"NIGHTWIRE_PUBLIC_{name.upper()}": at for name, at in self._public_endpoints().items()}
        # as before Kafka itself is there, nobody has any
        own = self._users.get(service.name, NOBODY) if self._users else {}
        return replace(service, environment={**service.environment, **public, **own})

    def _health(self, service: Service) -> Health:
        port = service.metrics or self._ports["prometheus"]
        url = f"http://127.0.0.1:{port}/{service.health if service.metrics else '-/healthy'}"

        async def healthy() -> bool:
            try:
                return (await self._http.get(url)).status_code == 200
            except httpx.HTTPError:
                return False

        return healthy

    async def _stop(self) -> None:
        """Stop the test stream first, then the services, Kafka last."""
        for task in self._following:
            task.cancel()
        others = [child for child in self._children if child.service.name != "kafka"]
        streams = [child for child in others if child.service.name == "stream"]
        await asyncio.gather(*(child.stop() for child in streams))
        await asyncio.gather(*(child.stop() for child in others if child not in streams))
        await asyncio.gather(*(child.stop() for child in self._children if child not in others))
        self._ready = False
        self._write()

    def _write(self) -> None:
        """Write the state file; a full disk keeps the old one, and nobody from his work."""
        try:
            write_state(self._plan.folder, self._state())
        except OSError as error:
            log.error("the state file is not written: %s", error)  # noqa: TRY400

    def _state(self) -> dict[str, Any]:
        return {
            "supervisor": {"pid": os.getpid(), "started": process_started(os.getpid())},
            "ready": self._ready,
            "failure": self._failure,
            "options": self._plan.options(),
            **self._doors.as_json(),
            "ports": self._ports,
            "endpoints": self._endpoints(),
            "processes": [child.describe() for child in self._children],
        }

    def _endpoints(self) -> dict[str, Any]:
        local = {name: f"127.0.0.1:{port}" for name, port in self._ports.items()}
        pages = {
            name.removesuffix("_metrics"): f"http://{address}/metrics"
            for name, address in local.items()
            if name.endswith("_metrics")
        }
        found: dict[str, Any] = {
            "kafka": local["kafka"],
            "schema_registry": f"http://{local['schema_registry']}",
            "directory": f"http://{local['directory']}",
            "vtp_authors": local["vtp_authors"],
            "vtp_subscribers": local["vtp_subscribers"],
            "metrics": pages,
            "public": self._public_endpoints(),
        }
        found |= {"portal": f"http://{local['portal']}"} if "portal" in local else {}
        found |= {"archive": f"http://{local['archive']}"} if "archive" in local else {}
        found |= {"users": f"http://{local['users']}"} if "users" in local else {}
        found |= {"tokens": issuer.token_endpoint} if (issuer := self._doors.issuer) else {}
        return found | ({"prometheus": f"http://{local['prometheus']}"} if has_prometheus() else {})

    def _public_endpoints(self) -> dict[str, str]:
        """Return by what other machines reach us; empty where they do not."""
        if (public := self._doors.public) is None:
            return {}
        ports = {name: self._ports.get(f"public_{name}") for name in PUBLIC_SCHEMES}
        found = {name: f"{public.host}:{port}" for name, port in ports.items() if port is not None}
        found = {name: PUBLIC_SCHEMES[name] + address for name, address in found.items()}
        return found | ({"ca": str(public.ca)} if public.ca else {})


async def _repeat(interval: float, look: Callable[[], object]) -> None:
    """Call *look* every *interval* [s], beside what goes on."""
    while True:
        await asyncio.sleep(interval)
        await asyncio.to_thread(look)


class KafkaProbe:
    """Asks Kafka whether it answers, again and again by one client.

    Args:
        bootstrap: Kafka's address.
        connect: Makes the client, when it is first asked.
    """

    def __init__(self, bootstrap: str, connect: Callable[[str], AdminClient] = admin) -> None:
        self._bootstrap, self._connect = bootstrap, connect

    @cached_property
    def _client(self) -> AdminClient:
        return self._connect(self._bootstrap)

    def answers(self) -> bool:
        """Return whether a broker answers within a second."""
        try:
            return bool(self._client.list_topics(timeout=1.0).brokers)
        except KafkaException:
            return False
