"""`nightwire replay`, once its options are read."""

import time
from contextlib import closing
from typing import Any

from nightwire.core.accounting import write_account
from nightwire.core.channels import ChannelCopies
from nightwire.core.cli import progress
from nightwire.core.kafka import Writer, enter, login, producer, retry_while_unavailable
from nightwire.core.runtime import Lateness, Stop, find_endpoints, now_ms, stopping
from nightwire.producer.cli.table import summary
from nightwire.producer.replay.replay import Player, Replay, by_visit, play_all
from nightwire.producer.replay.schema_ids import SchemaIds, schemas_in
from nightwire.producer.visits.abandoned import close_dead_visits
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.visits.visit_topic import PATIENCE, VisitTopic
from nightwire.producer.writing.connect import make_topics
from nightwire.schemas import SchemaRegistry, survey
from nightwire.schemas.topics import alerts


def run_replay(job: Replay, where: tuple[str | None, str | None], *, as_json: bool) -> dict[str, Any]:
    """Play the files of *job*, and return the counts.

    Args:
        job: What to play, and how.
        where: Kafka's address and the registry's URL, where given.
        as_json: Show no progress.

    Raises:
        NoStackError: There is no Kafka to talk to.
        SchemaError: There is no such survey, or a schema of ``--schema`` cannot be used.
        DeliveryError: Kafka did not take an alert.
    """
    found = find_endpoints(*where)
    enter(found.kafka, must_answer=False)
    described = survey(job.survey)
    registry = SchemaRegistry(found.schema_registry, login=login(found.kafka))
    channels = ChannelCopies(found.kafka, alerts(job.survey), job.survey, registry)
    with stopping() as stop, registry, closing(channels):
        for schema in schemas_in(job.schemas) if job.schemas else ():
            SchemaIds(registry, job.survey).id(schema)
        writer = Writer(producer(found.kafka))
        visit_topic = _visit_topic(found.kafka, writer, job.survey, stop)
        batch = visit_topic.open(visit_topic.replay)
        how: dict[str, Any] = {"channels": channels, "as_is": job.as_is}
        player = Player(described, writer, registry, batch, visit_topic, **how)
        channels.start()
        lateness = Lateness()
        with progress(None, "alerts", quiet=as_json) as meter:
            try:
                lateness = play_all(player, job, described, stop=stop, meter=meter, clock=time.monotonic)
            finally:  # what was written counts, even where the registry went away
                player.finish()
                close_replay(visit_topic, writer, player)
    return replayed(player, lateness)


def _visit_topic(bootstrap: str, writer: Writer, name: str, stop: Stop) -> "ReplayTopic":
    """Return the topic of visits for a new replay, after closing those of dead writers."""
    retry_while_unavailable(lambda: make_topics(bootstrap, name), patience=PATIENCE, stop=stop)
    retry_while_unavailable(
        lambda: close_dead_visits(bootstrap, VisitTopic(writer, name), name), patience=PATIENCE, stop=stop
    )
    return ReplayTopic(writer, name, now_ms())


class ReplayTopic(VisitTopic):
    """Opens and closes the visits of a replay, which has a record of its own in `visits`.

    Args:
        writer: Writes the alerts too.
        name: Name of the survey.
        replay: The replay's number: when it began. [ms]
    """

    def __init__(self, writer: Writer, name: str, replay: int) -> None:
        super().__init__(writer, name, replay=replay)
        self.replay = replay


def close_replay(visit_topic: VisitTopic, writer: Writer, player: Player) -> None:
    """Write the account of a replay, then the ends of its visits and its own.

    Visits that are played twice count twice, as they are in the topic twice.

    Raises:
        DeliveryError: Kafka did not take them.
    """
    write_account(writer, player.batch.account())
    writer.flush()
    for counts in [*by_visit(player.visits), player.batch]:
        visit_topic.end(counts)
    writer.flush()


def replayed(player: Player, lateness: Lateness) -> dict[str, Any]:
    """Return the counts of a replay as a whole, and by visit."""
    whole = summary([(player.batch, lateness)], player.batch.survey)
    visits: list[tuple[VisitCounts, Lateness]] = [(counts, Lateness()) for counts in by_visit(player.visits)]
    return whole | {"visits": summary(visits, player.batch.survey)["visits"]}
