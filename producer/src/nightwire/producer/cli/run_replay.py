"""What the verb `replay` does, once its options are read."""

import time
from typing import Any

from nightwire.core import kafka
from nightwire.core.accounting import write_account
from nightwire.core.cli import progress
from nightwire.core.runtime import Lateness, Stop, find_endpoints, now_ms, stopping
from nightwire.producer.cli.run_simulate import patiently
from nightwire.producer.cli.table import summary
from nightwire.producer.replay.replay import Player, Replay, by_visit, play_all
from nightwire.producer.replay.schema_ids import SchemaIds, schemas_in
from nightwire.producer.visits.abandoned import close_dead_visits
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.visits import VisitTopic
from nightwire.producer.writing.connect import make_topics
from nightwire.schemas import SchemaRegistry, survey


def run_replay(job: Replay, where: tuple[str | None, str | None], *, as_json: bool) -> dict[str, Any]:
    """Play the files of *job*, and return the counts.

    Args:
        job: What to play, and how.
        where: Kafka's address and the registry's URL, where given.
        as_json: A program is watching: no progress.

    Raises:
        NoStackError: There is no Kafka to talk to.
        SchemaError: There is no such survey, or a schema of ``--schema`` cannot be used.
        DeliveryError: Kafka did not take an alert.
    """
    found = find_endpoints(*where)
    described = survey(job.survey)
    with stopping() as stop, SchemaRegistry(found.schema_registry) as registry:
        for schema in schemas_in(job.schemas) if job.schemas else ():
            SchemaIds(registry, job.survey).id(schema)
        writer = kafka.Writer(kafka.producer(found.kafka))
        visit_topic = _visit_topic(found.kafka, writer, job.survey, stop)
        batch = visit_topic.open(visit_topic.replay)
        player = Player(described, writer, registry, batch, visit_topic, as_is=job.as_is)
        lateness = Lateness()
        with progress(None, "alerts", quiet=as_json) as meter:
            try:
                lateness = play_all(player, job, described, stop=stop, meter=meter, clock=time.monotonic)
            finally:  # what was written counts, even where the registry went away
                player.finish()
                close_replay(visit_topic, writer, player)
    return replayed(player, lateness)


def _visit_topic(bootstrap: str, writer: kafka.Writer, name: str, stop: Stop) -> "ReplayDesk":
    """Return a desk for a new replay, after closing what an earlier writer left open."""
    patiently(lambda: make_topics(bootstrap, name), stop)
    patiently(lambda: close_dead_visits(bootstrap, VisitTopic(writer, name), name), stop)
    return ReplayDesk(writer, name, now_ms())


class ReplayDesk(VisitTopic):
    """Open and close the visits of a replay, which is itself kept as a visit.

    Args:
        writer: The one that writes the alerts.
        name: Of the survey.
        replay: The replay's number: when it began. [ms]
    """

    def __init__(self, writer: kafka.Writer, name: str, replay: int) -> None:
        super().__init__(writer, name, replay=replay)
        self.replay = replay


def close_replay(visit_topic: VisitTopic, writer: kafka.Writer, player: Player) -> None:
    """Write the account of a replay, then the end of the visits that it met, and its own.

    The account is the whole replay's: visits that are played twice count twice, as they lie in the topic.

    Raises:
        DeliveryError: Kafka did not take them.
    """
    write_account(writer, player.batch.account())
    writer.flush()
    for ledger in [*by_visit(player.visits), player.batch]:
        visit_topic.end(ledger)
    writer.flush()


def replayed(player: Player, lateness: Lateness) -> dict[str, Any]:
    """Return the counts of a replay: the whole batch's, and those of the visits that were met."""
    whole = summary([(player.batch, lateness)], player.batch.survey)
    visits: list[tuple[VisitCounts, Lateness]] = [(ledger, Lateness()) for ledger in by_visit(player.visits)]
    return whole | {"visits": summary(visits, player.batch.survey)["visits"]}
