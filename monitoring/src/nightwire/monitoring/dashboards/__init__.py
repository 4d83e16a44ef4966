"""Grafana's dashboards: tables of panels, a module a dashboard, and the JSON made of them."""

from nightwire.monitoring.dashboards.grafana import ALL, PAGES, dashboard_json
from nightwire.monitoring.dashboards.panel import Panel, Row, queries

__all__ = ["ALL", "PAGES", "Panel", "Row", "dashboard_json", "queries"]
