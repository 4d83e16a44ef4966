"""The verb `nightwire filter run`: the engine."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from nightwire.core.cli import bootstrap_option, metrics_port_option, registry_option

default_option = partial(click.option, show_default=True)


@click.command()
@click.option(
    "--state", required=True, type=click.Path(file_okay=False, path_type=Path), help="State directory."
)
@default_option(
    "--batch", default=10_000, type=click.IntRange(1),
    help="Most records in a batch; within that, as many as take about 2 s.",
)  # fmt: skip
@default_option(
    "--deadline", default=300.0, type=click.FloatRange(0),
    help="Longest that a filter that takes the best waits for the end of a visit. [s]",
)  # fmt: skip
@default_option(
    "--trial-alerts", default=300, type=click.IntRange(0),
    help="Recent alerts of each survey that a new filter is tried on.",
)  # fmt: skip
@default_option(
    "--most-share", default=0.05, type=click.FloatRange(0, 1), help="Largest part of them that may pass."
)
@default_option(
    "--backfill-most", default=1000, type=click.IntRange(0),
    help="Most alerts that a filter's backfill sends; the rest goes to overflow.",
)  # fmt: skip
@click.option("--allow-no-trial", is_flag=True, help="Owners may submit filters without a trial.")
@default_option(
    "--sandbox", type=click.Choice(["strong", "weak", "none"]), default="strong",
    help="How filters that are code are contained: by every layer there is (else they are not judged), by "
    "those that this machine has, or not at all.",
)  # fmt: skip
@click.option(
    "--light",
    is_flag=True,
    help="Without Spark and Java: one process, one core; and those of the slow lanes.",
)
@default_option("--memory", default="768m", help="Heap of each of Spark's Java processes.")
@default_option(
    "--master", envvar="NIGHTWIRE_SPARK_MASTER", default="local[2,4]", show_envvar=True,
    help="Spark master; spark://HOST:PORT for a cluster, whose machines see --state under the same path.",
)  # fmt: skip
@default_option(
    "--tasks", default=2, type=click.IntRange(1), help="Tasks of a batch: as many as Spark has cores."
)
@click.option(
    "--slow-processes", default=lambda: max(1, (os.cpu_count() or 1) // 2), show_default="half of the cores",
    type=click.IntRange(1),
    help="Processes of the slow lanes, in which filters that cost much are judged, owner after owner.",
)  # fmt: skip
@default_option(
    "--most-behind", default=600.0, type=click.FloatRange(1),
    help="From so far behind the quick lane on, a slow one leaves alerts out, and says which. [s]",
)  # fmt: skip
@bootstrap_option
@registry_option
@metrics_port_option
def run(
    state: Path, light: bool, bootstrap: str | None, registry: str | None, metrics_port: int,
    trial_alerts: int, most_share: float, backfill_most: int, allow_no_trial: bool, **options: Any,
) -> None:  # fmt: skip
    """Run the filter engine: judge every alert by every live filter, until SIGTERM or Ctrl-C.

    With --sandbox none, filters that are code run with this process's rights; accept them then only
    from people you trust.

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
    policy = AdmissionPolicy(
        alerts=trial_alerts, share=most_share, untried=allow_no_trial, backfill=backfill_most
    )
    settings = EngineSettings(
        at.kafka,
        at.schema_registry,
        state.resolve(),
        page=metrics_port > 0,
        trial=policy,
        archive=at.archive,
        **options,
    )
    raise SystemExit(serve(settings, metrics_port, light=light))
