"""The verb `nightwire ingest`."""

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from nightwire.core.cli import (
    bootstrap_option,
    duration_option,
    json_option,
    metrics_port_option,
    parse_duration,
    registry_option,
    survey_option,
)
from nightwire.producer.cli.commands import format_option

if TYPE_CHECKING:
    from nightwire.producer.ingest.items import Counts
    from nightwire.producer.ingest.plan import Plan

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Moment(click.ParamType):  # type: ignore[type-arg]
    """Where to begin: ``beginning``, ``live``, a time, or so long ago."""

    name = "beginning|live|TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a `nightwire.producer.ingest.plan.Start`."""
        from nightwire.producer.ingest.plan import Start

        if value in ("beginning", "live"):
            return Start(live=value == "live")
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            try:
                moment = datetime.now(UTC) - parse_duration(value)
            except ValueError:
                self.fail(f"{value!r}: write beginning, live, 2026-11-21T03:00 (UTC) or 2h", param, ctx)
        return Start(at=moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment)


@click.command()
@survey_option
@click.option(
    "--from",
    "source",
    required=True,
    metavar="HOST:PORT",
    envvar="NIGHTWIRE_INGEST_FROM",
    help="The survey's Kafka.",
)
@click.option("--topic", "topics", multiple=True, metavar="T", help="Topic there; may be given again.")
@click.option(
    "--topic-pattern",
    "patterns",
    multiple=True,
    metavar="T",
    help="Topics there, one a night: {date} stands for YYYYMMDD.  New nights are picked up as they appear.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Name of the source in accounts and headers.  [default: the first host of --from]",
)
@click.option("--group", metavar="NAME", help="Name of our group there.  [default: nightwire-SURVEY]")
@click.option("--source-registry", metavar="URL", help="The survey's schema registry; containers need none.")
@format_option
@click.option(
    "--start",
    type=Moment(),
    default="beginning",
    show_default=True,
    help="Where to begin with a new topic; others go on where the last run ended.",
)
@click.option("--until-end", is_flag=True, help="Stop at the present end; exit 1 if there are dead letters.")
@duration_option(
    "--visit-quiet",
    "30s",
    "A visit without alerts for so long is over; so is one after which two more began.",
)
@duration_option(
    "--schema-patience",
    "5m",
    "How long the stream waits for a schema that no registry has, before its alerts go to dead-letters.",
)
@duration_option(
    "--batch", "500ms", "Longest time that a transaction is collected: what readers wait at most, about."
)
@bootstrap_option
@registry_option
@metrics_port_option
@json_option
def ingest(source: str, bootstrap: str | None, registry: str | None, as_json: bool, **options: Any) -> None:
    """Mirror a survey's own Kafka into the topic alerts.SURVEY; Avro bodies stay as they are.

    Alerts get their object as key, and headers that say where they come from.  Positions are
    written in one transaction with the alerts, so a kill loses and doubles nothing.  Run one such
    process per survey: a second one ends the first.  Unusable records go to dead-letters, with the
    reason.

    Credentials of the source come from the environment: NIGHTWIRE_SOURCE_KAFKA_SASL_PASSWORD sets
    librdkafka's sasl.password, and so on for every property; NIGHTWIRE_SOURCE_REGISTRY_USER and
    _PASSWORD are for its registry.  Those of our own Kafka are KAFKA_*, as everywhere.

    \b
    Example, Rubin: wire format, a schema registry, SCRAM over TLS
      export NIGHTWIRE_SOURCE_KAFKA_SECURITY_PROTOCOL=SASL_SSL
      export NIGHTWIRE_SOURCE_KAFKA_SASL_MECHANISM=SCRAM-SHA-512
      export NIGHTWIRE_SOURCE_KAFKA_SASL_USERNAME=… NIGHTWIRE_SOURCE_KAFKA_SASL_PASSWORD=…
      nightwire ingest --survey lsst --from usdf.example.org:9094 --topic lsst-alerts-v11.0 \\
          --source-registry https://registry.example.org --group mybroker-1
    \b
    ZTF: containers, a topic a night
      nightwire ingest --survey ztf --from ztf.example.org:9092 \\
          --topic-pattern 'ztf_{date}_programid1'
    \b
    With tokens (OpenID), as GCN has them; S stands for NIGHTWIRE_SOURCE_KAFKA
      export S_SECURITY_PROTOCOL=SASL_SSL S_SASL_MECHANISM=OAUTHBEARER
      export S_SASL_OAUTHBEARER_METHOD=oidc
      export S_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL=https://auth.example.org/oauth2/token
      export S_SASL_OAUTHBEARER_CLIENT_ID=… S_SASL_OAUTHBEARER_CLIENT_SECRET=…
      nightwire ingest --survey lsst --from kafka.example.org:9092 --topic alerts --start live
    """
    from nightwire.core.runtime import find_endpoints
    from nightwire.producer.ingest.run import IngestSettings, run_ingest

    plan = _plan(source, **options)
    found = find_endpoints(bootstrap, registry)
    if found.schema_registry is None:
        raise click.UsageError("no schema registry of ours: name it with --registry URL")
    group = options["group"] or f"nightwire-{plan.survey}"
    where = IngestSettings(source, group, options["source_registry"], found)
    counts = run_ingest(plan, where, metrics_port=options["metrics_port"], quiet=as_json)
    _show(counts, as_json=as_json)
    raise SystemExit(1 if plan.until_end and counts.dead_lettered else 0)


def _plan(source: str, **options: Any) -> "Plan":
    """Return the plan in the options; an error names all that is wrong with them."""
    from nightwire.producer.ingest.plan import DATE, Plan, Topics

    name = options["name"] or source.split(",")[0].rpartition(":")[0].strip("[]").replace(":", "-")
    wrong = [
        f"--topic-pattern {pattern!r} has no {DATE}: name the topic with --topic"
        for pattern in options["patterns"]
        if DATE not in pattern
    ]
    if not options["topics"] and not options["patterns"]:
        wrong.append("nothing to mirror: name topics with --topic or --topic-pattern")
    if not NAME.fullmatch(name):
        wrong.append(f"{name!r} is no name of a source: give it one with --name, of letters, digits, . _ -")
    if wrong:
        raise click.UsageError("; ".join(wrong))
    return Plan(
        survey=options["survey"],
        source=name,
        topics=Topics(options["topics"], options["patterns"]),
        start=options["start"],
        as_is=options["shape"] == "as-is",
        until_end=options["until_end"],
        quiet=options["visit_quiet"],
        patience=options["schema_patience"],
        batch=options["batch"],
    )


def _show(counts: "Counts", *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(vars(counts)))
        return
    rejected = "".join(f", {count:,} {reason}" for reason, count in counts.rejected.items())
    click.echo(
        f"{counts.read:,} records read: {counts.delivered:,} mirrored as {counts.alerts:,} alerts, "
        f"{counts.dead_lettered:,} in dead-letters{rejected}"
    )
