"""The verb `nightwire bench`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nightwire.benchmarks.harness.options import RunOptions
    from nightwire.benchmarks.model.scenario import Scenario

PATH = click.Path(dir_okay=False, path_type=Path)
results_option = click.option(
    "--results",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of result files.  [default: benchmarks/results]",
)


@click.group()
def bench() -> None:
    """Benchmarks: each beside its baseline, in the same run.

    \b
    Example:
      nightwire bench run visit --alerts 10000
      nightwire bench report
    """


@bench.command("list")
def list_() -> None:
    """List the scenarios, and what a quick run of each takes.

    \b
    Example:
      nightwire bench list
    """
    from nightwire.benchmarks.harness.preflight import minutes
    from nightwire.benchmarks.scenarios.registry import names, scenario

    for name in names():
        one = scenario(name)
        size = one.standard["quick"]
        click.echo(f"{name:12} {one.title}  (quick: about {minutes(one.needs(size).seconds)})")


@bench.command()
@click.argument("scenarios", nargs=-1, metavar="SCENARIO…")
@click.option("--all", "every", is_flag=True, help="Run every scenario.")
@click.option("--alerts", type=click.IntRange(1), help="Alerts in each run.  [default: the profile's]")
@click.option(
    "--pairs", type=click.IntRange(1), help="Pairs of subject and baseline.  [default: the profile's]"
)
@click.option(
    "--rate",
    type=click.FloatRange(0.1),
    help="Alerts a second in the open loop. [1/s]  [default: the profile's]",
)
@click.option(
    "--profile",
    type=click.Choice(["smoke", "quick", "full"]),
    default="quick",
    envvar=["NIGHTWIRE_BENCH_RUN_PROFILE", "PROFILE"],
    show_default=True,
    help="Size of the scenarios, also PROFILE: smoke shows that all runs, quick takes minutes, full is as "
    "published.",
)
@click.option(
    "--engine",
    type=click.Choice(["own", "there", "none"]),
    default="own",
    show_default=True,
    help="Filter engine: start one, use the one that runs on that Kafka, or leave filters out.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(1),
    help="For all together: what is estimated to take longer is refused, and nothing begins after it. [s]  "
    "[default: 1680; 172800 under --profile full]",
)
@click.option(
    "--record/--no-record",
    default=True,
    show_default=True,
    help="Keep what each process takes over time, and what its metrics page says, in the result.",
)
@click.option("--only", default="", metavar="TEXT", help="Experiments whose names contain TEXT; wants --out.")
@click.option("--fresh", is_flag=True, help="Begin anew what was interrupted under --profile full.")
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    envvar=["NIGHTWIRE_BENCH_RUN_BOOTSTRAP", "KAFKA_BOOTSTRAP_SERVERS"],
    help="Kafka to measure; also KAFKA_BOOTSTRAP_SERVERS.  [default: start one]",
)
@click.option(
    "--out", type=PATH, help="Result file.  [default: benchmarks/results/SCENARIO-DATE-COMMIT.json]"
)
def run(
    scenarios: tuple[str, ...], every: bool, out: Path | None, time_limit: float | None, **options: Any
) -> None:
    """Run scenarios, write their results, and print them.

    One that is refused or fails takes no other along; the exit status tells. Under --profile full
    each run is kept as it comes: after an interruption the same command goes on, and runs that
    others disturbed are repeated.

    \b
    Example:
      nightwire bench run visit --alerts 10000 --pairs 3
      nightwire bench run codec stretch --profile smoke
      nightwire bench run filters --only habits --out habits.json
      PROFILE=full nightwire bench run --all
    """
    from nightwire.benchmarks.harness.options import FULL_LIMIT, LIMIT, RunOptions
    from nightwire.benchmarks.harness.suite import shortest_first
    from nightwire.benchmarks.scenarios import registry

    chosen = registry.names() if every else list(scenarios)
    if not chosen:
        raise click.UsageError(f"name scenarios, or --all; there are: {', '.join(registry.names())}")
    if out is not None and len(chosen) > 1:
        raise click.UsageError("--out takes one scenario")
    if options["only"] and out is None:
        raise click.UsageError("--only measures a part, which is no result of its scenario: give it --out")
    try:
        found = [registry.scenario(name) for name in chosen]
    except registry.UnknownScenarioError as error:
        raise click.UsageError(str(error)) from error
    limit = time_limit or (FULL_LIMIT if options["profile"] == "full" else LIMIT)
    chosen_options = RunOptions(**options, time_limit=limit)
    _run_all(shortest_first(found, chosen_options) if every else found, chosen_options, out)


def _run_all(scenarios: "Sequence[Scenario]", options: "RunOptions", out: Path | None) -> None:
    from nightwire.benchmarks.harness.result_files import results_folder
    from nightwire.benchmarks.harness.suite import ResultTarget, endings, estimates, run_all

    several = len(scenarios) > 1
    for line in estimates(scenarios, options) if several else ():
        click.echo(line, err=True)
    target = ResultTarget(results_folder(), out)
    done = run_all(scenarios, options, target, lambda text: click.echo(text, err=True), _show)
    if several:
        click.echo("\n" + "\n".join(endings(done)))
    if troubles := [one for one in done if one.trouble]:
        names = ", ".join(one.name for one in troubles)
        raise click.ClickException(f"not all was measured: {names}" if several else troubles[0].trouble)


def _show(result: dict[str, Any], path: Path) -> None:
    from nightwire.benchmarks.report import terminal_lines

    for line in terminal_lines(result):
        click.echo(line)
    click.echo(f"\nresult: {path}")


@bench.command()
@results_option
@click.option("--out", type=PATH, help="The page; its Markdown lies beside it.  [default: report.html there]")
def report(results: Path | None, out: Path | None) -> None:
    """Make the report, one HTML page and a Markdown table, from the newest result of each scenario.

    Without --results and --out it also rewrites the figures in the README of the clone.

    \b
    Example:
      nightwire bench report --out /tmp/report.html
    """
    from nightwire.benchmarks.harness.result_files import ResultError, latest, results_folder
    from nightwire.benchmarks.report import html_page, markdown, readme_of, rewrite

    folder = results or results_folder()
    try:
        found = latest(folder)
    except ResultError as error:
        raise click.ClickException(str(error)) from error
    if not found:
        raise click.ClickException(f"no results in {folder}: run `nightwire bench run --all` first")
    page = out or folder / "report.html"
    page.write_text(html_page(found), encoding="utf-8")
    page.with_suffix(".md").write_text(markdown(found), encoding="utf-8")
    click.echo(f"{page}\n{page.with_suffix('.md')}")
    if results is None and out is None and (readme := readme_of(folder)):
        rewrite(readme, found)
        click.echo(readme)


class Uncomparable(click.ClickException):
    """Results cannot be compared: exit status 2, for 1 says that something became slower."""

    exit_code = 2


@bench.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", required=False)
@results_option
@click.option(
    "--least",
    type=click.FloatRange(0, 99),
    default=5.0,
    show_default=True,
    help="Least difference that counts. [%]",
)
@click.option("--all", "every", is_flag=True, help="Show the figures that did not change, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every figure.")
def compare(
    before: str, after: str | None, results: Path | None, least: float, every: bool, as_json: bool
) -> None:
    """Tell what became slower from A to B, given the noise of both.

    A and B are result files, folders of results, or commits of results; of a folder and of a
    commit, the newest result of each scenario counts. Without B, it is the newest of the same
    scenario. Figures with a baseline are compared by their ratios to it, pair by pair, which
    cancels the machine; others by value. What is unstable, or was run once, is not judged.

    Exit status: 0 nothing became slower, 1 something did, 2 they cannot be compared.

    \b
    Example:
      nightwire bench compare 72e2375c1be3
      nightwire bench compare 72e2375c1be3 52d5054005c8 --all
      nightwire bench compare before.json after.json --least 10 --json
    """
    from nightwire.benchmarks.compare.command import compare_words
    from nightwire.benchmarks.compare.comparison import CompareError
    from nightwire.benchmarks.harness.result_files import ResultError, results_folder

    try:
        slower = compare_words(
            before, after, results or results_folder(), least / 100, every=every, as_json=as_json
        )
    except (CompareError, ResultError) as error:
        raise Uncomparable(str(error)) from error
    raise SystemExit(int(slower))
