"""The verbs of monitoring: `nightwire exporter`, `nightwire prometheus`, `nightwire dashboards`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nightwire.core.cli import bootstrap_option

if TYPE_CHECKING:
    from nightwire.monitoring.config import Job

MISSING = 3
"""Exit status when Prometheus is not installed."""


@click.command()
@bootstrap_option
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=9400,
    show_default=True,
    help="Port of the metrics page; 0 takes a free one, and the log names it.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="Time between observations of Kafka. [s]",
)
def exporter(bootstrap: str | None, metrics_port: int, interval: float) -> None:
    """Serve metrics of the accounts, of lag and of Kafka's health to Prometheus.

    \b
    Example:
      nightwire exporter --bootstrap 127.0.0.1:9092 --metrics-port 9400
    """
    from nightwire.core.presence import metrics_at, registered
    from nightwire.core.runtime import find_endpoints, setup_logging, stopping
    from nightwire.monitoring.exporter import export

    setup_logging("nightwire.exporter")
    kafka = find_endpoints(bootstrap).kafka
    with stopping() as stop, registered(kafka, "exporter", endpoints=metrics_at(metrics_port)):
        export(kafka, metrics_port, stop, interval=interval)


@click.command()
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".nightwire/prometheus"),
    show_default=True,
    help="Folder of its configuration and data.",
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=9090, show_default=True, help="Port, on 127.0.0.1."
)
@click.option(
    "--target",
    "targets",
    metavar="NAME=HOST:PORT",
    multiple=True,
    help="Metrics page of a process; repeatable.",
)
@click.option("--directory", metavar="URL", help="The directory, by which all pages of a site are found.")
@click.option(
    "--job",
    "jobs",
    metavar="JOB=HOST:PORT[/PATH]",
    multiple=True,
    help="Page that is not nightwire's: kafka, spark, node; repeatable.",
)
@click.option("--alertmanager", metavar="HOST:PORT", help="Where alerts are sent to.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="Time between scrapes. [s]",
)
@click.option("--retention", default="256MB", show_default=True, help="Most disk that its data may take.")
def prometheus(
    state: Path,
    port: int,
    targets: tuple[str, ...],
    directory: str | None,
    jobs: tuple[str, ...],
    alertmanager: str | None,
    interval: float,
    retention: str,
) -> None:
    """Run Prometheus with nightwire's rules, where it is installed; exit 3 where it is not.

    \b
    Examples:
      nightwire prometheus --directory http://127.0.0.1:8083
      nightwire prometheus --port 9090 --target gateway=127.0.0.1:9401
      nightwire prometheus --target filters=127.0.0.1:9402 --job spark=127.0.0.1:9402/spark
    """
    from nightwire.monitoring.config import prepare_prometheus, replace_process

    if not (targets or jobs or directory):
        raise click.UsageError("name --directory URL, or pages by --target and --job")
    line = prepare_prometheus(
        state,
        port,
        dict(_named(text, "--target") for text in targets),
        retention=retention,
        interval=f"{round(1000 * interval)}ms",
        jobs=_jobs(jobs),
        alertmanager=alertmanager,
        directory=directory,
    )
    if line is None:
        click.echo("Prometheus is not installed: apt-get install prometheus", err=True)
        raise SystemExit(MISSING)
    replace_process(line)


def _named(text: str, option: str) -> tuple[str, str]:
    name, equals, address = text.partition("=")
    if not (name and equals and ":" in address):
        raise click.BadParameter(f"{text!r} is not NAME=HOST:PORT", param_hint=option)
    return name, address


def _jobs(texts: tuple[str, ...]) -> "dict[str, Job]":
    from nightwire.monitoring.config import Job

    jobs: dict[str, Job] = {}
    for text in texts:
        name, address = _named(text, "--job")
        target, slash, path = address.partition("/")
        known = jobs[name].targets if name in jobs else []
        jobs[name] = Job([*known, target], slash + path or "/metrics")
    return jobs


@click.group()
def dashboards() -> None:
    """Grafana's dashboards, Prometheus' and Alertmanager's configuration, written from code."""


@dashboards.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("monitoring"),
    show_default=True,
    help="Folder that gets grafana/dashboards/, prometheus/ and alertmanager/.",
)
@click.option(
    "--webhook",
    metavar="URL",
    envvar="NIGHTWIRE_ALERT_WEBHOOK",
    help="Where Alertmanager posts alerts.  [default: nowhere]",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 where a file is not up to date.")
def build(out: Path, webhook: str | None, check: bool) -> None:
    """Write the dashboards, and the compose stack's Prometheus and Alertmanager files.

    \b
    Examples:
      nightwire dashboards build
      nightwire dashboards build --webhook http://chat.example.org/hooks/night
    """
    from nightwire.monitoring.config.generated_files import stale, write

    old = stale(out, webhook)
    for path in old:
        click.echo(f"{'not up to date' if check else 'written'}: {path}", err=True)
    if not check:
        write(out, webhook)
    raise SystemExit(1 if check and old else 0)
