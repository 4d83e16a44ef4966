"""Grafana's dashboards, as JSON, from the panels that the modules beside this one list."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import BigValueTextMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from nightwire.monitoring.dashboards.benchmark import BENCH
from nightwire.monitoring.dashboards.consumers import CONSUMERS
from nightwire.monitoring.dashboards.filters import FILTERS
from nightwire.monitoring.dashboards.gateway import GATEWAY
from nightwire.monitoring.dashboards.kafka import KAFKA
from nightwire.monitoring.dashboards.machines import MACHINES
from nightwire.monitoring.dashboards.night import NIGHT
from nightwire.monitoring.dashboards.panel import Kind, Panel, Row, description, no_value_text
from nightwire.monitoring.dashboards.producer import PRODUCER
from nightwire.monitoring.dashboards.schemas import SCHEMAS
from nightwire.monitoring.dashboards.spark import SPARK

SOURCE = model.DataSourceRef(type_val="prometheus", uid="prometheus")
OTHERS = (
    build.DashboardLink("nightwire")
    .type(model.DashboardLinkType.DASHBOARDS)
    .tags(["nightwire"])
    .keep_time(True)
)
"""The way from each dashboard to all others."""
HEIGHTS = {Kind.NUMBER: 4, Kind.LINES: 8, Kind.TABLE: 8}
COUNTS = {Kind.NUMBER: "locale", Kind.LINES: "short", Kind.TABLE: "locale"}
"""How counts are written: in = out is seen only where they are exact."""
BUILDERS: dict[Kind, Any] = {Kind.NUMBER: stat.Panel, Kind.LINES: timeseries.Panel, Kind.TABLE: table.Panel}


@dataclass(frozen=True)
class Page:
    """One dashboard.

    Attributes:
        title: Its name.
        meaning: Who looks at it, and for what.
        rows: Its panels.
    """

    title: str
    meaning: str
    rows: Sequence[Row]


PAGES = {
    "night": Page(
        "the night", "In = out, rates, latency, lag, caps, faults: what an operator looks at first.", NIGHT
    ),
    "producer": Page("producer", "What is written, on time or late, and what is mirrored.", PRODUCER),
    "schemas": Page("schemas", "The schema registry: its health, what it knows and who asks it.", SCHEMAS),
    "filters": Page("filters", "Batches, delays, costs and caps of users' filters.", FILTERS),
    "consumers": Page("consumers", "Who reads, how far behind they are, and what brokers take.", CONSUMERS),
    "gateway": Page(
        "the gateway", "VOEvents in and out, feeds, peers, and who was kept out and why.", GATEWAY
    ),
    "kafka": Page("Kafka", "Traffic, latencies, logs, copies in step, memory: by its JMX agent.", KAFKA),
    "spark": Page("Spark", "Batches, rates, state and memory of the filters' query, as Spark says.", SPARK),
    "machines": Page("machines", "CPU, memory, disks and network, by node-exporter.", MACHINES),
    "benchmark": Page("benchmark", "What one watches while `make bench` runs, and what limits it.", BENCH),
}
"""All dashboards, by the name of their file."""


def dashboard_json(name: str) -> str:
    """Return a dashboard, as Grafana reads it."""
    about = PAGES[name]
    page = (
        build.Dashboard(f"Nightwire: {about.title}")
        .uid(f"nightwire-{name}")
        .description(about.meaning)
        .tags(["nightwire"])
        .refresh("10s")
        .time("now-1h", "now")
        .timezone("utc")
        .readonly()
        .link(OTHERS)
    )
    for row in about.rows:
        page = page.with_row(build.Row(row.title))
        for panel in row.panels:
            page = page.with_panel(_panel(row, panel))
    text = json.dumps(page.build(), cls=JSONEncoder, indent=2, sort_keys=True)
    return text + "\n"


def _panel(row: Row, panel: Panel) -> Any:
    drawn = (
        BUILDERS[panel.kind]()
        .title(panel.title)
        .description(description(row, panel))
        .datasource(SOURCE)
        .unit(panel.unit or COUNTS[panel.kind])
        .span(panel.width)
        .height(HEIGHTS[panel.kind])
        .thresholds(_thresholds(panel))
    )
    drawn = _shown(drawn, row, panel)
    for number, (legend, query) in enumerate(panel.queries.items()):
        drawn = drawn.with_target(_target(panel.kind, chr(ord("A") + number), legend, query))
    return _joined(drawn, panel) if panel.kind is Kind.TABLE else drawn


def _shown(drawn: Any, row: Row, panel: Panel) -> Any:
    """Set what only some panels have."""
    if panel.kind is Kind.LINES:
        drawn = drawn.axis_soft_min(0)
    if panel.red_above is not None or panel.red_below is not None:
        drawn = drawn.color_scheme(build.FieldColor().mode(model.FieldColorModeId.THRESHOLDS))
    if panel.named:
        drawn = drawn.text_mode(BigValueTextMode.NAME)
    if panel.kind is not Kind.TABLE and (
        words := no_value_text(row, panel)
    ):  # a table has it in each empty cell
        drawn = drawn.no_value(words)
    return drawn


def _target(kind: Kind, ref: str, legend: str, query: str) -> Any:
    target = prometheus.Dataquery().ref_id(ref).expr(query).legend_format(legend)
    if kind is Kind.TABLE:
        return target.instant().format(PromQueryFormat.TABLE)
    return target


def _thresholds(panel: Panel) -> Any:
    base, above = ("red", "green") if panel.red_below is not None else ("green", "red")
    limit = panel.red_below if panel.red_below is not None else panel.red_above
    steps = [model.Threshold(value=None, color=base)]
    if limit is not None:
        steps.append(model.Threshold(value=limit, color=above))
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)


def _joined(drawn: Any, panel: Panel) -> Any:
    """Make one row a stage (a filter, a group), one column a query."""
    columns = {f"Value #{chr(ord('A') + number)}": legend for number, legend in enumerate(panel.queries)}
    options = {"renameByName": columns, "excludeByName": {"Time": True}}
    joined = model.DataTransformerConfig(id_val="merge", options={})
    tidy = model.DataTransformerConfig(id_val="organize", options=options)
    return drawn.with_transformation(joined).with_transformation(tidy)


ALL: tuple[Row, ...] = (
    *NIGHT,
    *PRODUCER,
    *SCHEMAS,
    *FILTERS,
    *CONSUMERS,
    *GATEWAY,
    *KAFKA,
    *SPARK,
    *MACHINES,
    *BENCH,
)
"""The rows of all dashboards."""
