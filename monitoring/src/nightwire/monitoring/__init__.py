"""Is in = out, and who lags: the exporter, the dashboards, and what Prometheus watches."""
