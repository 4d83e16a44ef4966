"""The verb `nightwire filter run`: the engine."""

from pathlib import Path

import click

from nightwire.core.options import bootstrap_option, metrics_port_option, registry_option


@click.command()
@click.option(
    "--state", required=True, type=click.Path(file_okay=False, path_type=Path), help="State directory."
)
@click.option(
    "--batch", default=2500, show_default=True, type=click.IntRange(1), help="Most records in a batch."
)
@click.option(
    "--deadline",
    default=300.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Longest that a filter that takes the best waits for the end of a visit. [s]",
)
@click.option("--memory", default="768m", show_default=True, help="Heap of Spark's Java process.")
@click.option("--master", default="local[2,4]", show_default=True, help="Spark master.")
@bootstrap_option
@registry_option
@metrics_port_option
def run(
    state: Path,
    batch: int,
    deadline: float,
    memory: str,
    master: str,
    bootstrap: str | None,
    registry: str | None,
    metrics_port: int,
) -> None:
    """Run the filter engine: judge every alert by every live filter, until SIGTERM or Ctrl-C.

    Filters run with this process's rights; accept them only from people you trust.

    \b
    Example:
      nightwire filter run --state /var/lib/nightwire/filters
    """
    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._run import serve
    from nightwire.filters._settings import Settings

    at = find_endpoints(bootstrap, registry)
    if at.schema_registry is None:
        raise click.UsageError(
            "no schema registry: name one with --registry URL or NIGHTWIRE_SCHEMA_REGISTRY"
        )
    settings = Settings(
        at.kafka, at.schema_registry, state.resolve(), master, memory, batch, deadline=deadline
    )
    raise SystemExit(serve(settings, metrics_port))
