"""The verb `nightwire filter run`: the engine."""

from pathlib import Path

import click

from nightwire.core.cli import bootstrap_option, metrics_port_option, registry_option


@click.command()
@click.option(
    "--state", required=True, type=click.Path(file_okay=False, path_type=Path), help="State directory."
)
@click.option(
    "--batch",
    default=10_000,
    show_default=True,
    type=click.IntRange(1),
    help="Most records in a batch; within that, as many as take about 2 s.",
)
@click.option(
    "--deadline",
    default=300.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Longest that a filter that takes the best waits for the end of a visit. [s]",
)
@click.option(
    "--trial-alerts",
    default=300,
    show_default=True,
    type=click.IntRange(0),
    help="Recent alerts of each survey that a new filter is tried on.",
)
@click.option(
    "--most-share",
    default=0.05,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Largest part of them that may pass.",
)
@click.option(
    "--backfill-most",
    default=1000,
    show_default=True,
    type=click.IntRange(0),
    help="Most alerts that a filter's backfill sends; the rest goes to overflow.",
)
@click.option("--allow-no-trial", is_flag=True, help="Owners may submit filters without a trial.")
@click.option(
    "--sandbox",
    type=click.Choice(["strong", "weak", "none"]),
    default="strong",
    show_default=True,
    help="How filters that are code are contained: by every layer there is (else they are not judged), by "
    "those that this machine has, or not at all.",
)
@click.option("--light", is_flag=True, help="Without Spark and Java: one process, one core.")
@click.option("--memory", default="768m", show_default=True, help="Heap of each of Spark's Java processes.")
@click.option(
    "--master",
    envvar="NIGHTWIRE_SPARK_MASTER",
    default="local[2,4]",
    show_default=True,
    show_envvar=True,
    help="Spark master; spark://HOST:PORT for a cluster, whose machines see --state under the same path.",
)
@click.option(
    "--tasks",
    default=2,
    show_default=True,
    type=click.IntRange(1),
    help="Tasks of a batch: as many as Spark has cores.",
)
@bootstrap_option
@registry_option
@metrics_port_option
def run(
    state: Path,
    batch: int,
    deadline: float,
    trial_alerts: int,
    most_share: float,
    backfill_most: int,
    allow_no_trial: bool,
    sandbox: str,
    light: bool,
    memory: str,
    master: str,
    tasks: int,
    bootstrap: str | None,
    registry: str | None,
    metrics_port: int,
) -> None:
    """Run the filter engine: judge every alert by every live filter, until SIGTERM or Ctrl-C.

    With --sandbox none, filters that are code run with this process's rights; accept them then only from
    people you trust.

    \b
    Example:
      nightwire filter run --state /var/lib/nightwire/filters
      nightwire filter run --state DIR --light
    """
    from nightwire.core.runtime import find_endpoints
    from nightwire.filters.admission.trial import AdmissionPolicy
    from nightwire.filters.cli.serve import serve
    from nightwire.filters.engine.settings import EngineSettings

    at = find_endpoints(bootstrap, registry)
    if at.schema_registry is None:
        raise click.UsageError(
            "no schema registry: name one with --registry URL or NIGHTWIRE_SCHEMA_REGISTRY"
        )
    rules = AdmissionPolicy(
        alerts=trial_alerts, share=most_share, untried=allow_no_trial, backfill=backfill_most
    )
    settings = EngineSettings(
        at.kafka,
        at.schema_registry,
        state.resolve(),
        master,
        memory,
        batch,
        tasks,
        deadline=deadline,
        page=metrics_port > 0,
        sandbox=sandbox,
        trial=rules,
    )
    raise SystemExit(serve(settings, metrics_port, light=light))
