"""Alertmanager's configuration: where alerts are sent to, and how soon."""

import json

CONFIG = """\
# Written by `nightwire dashboards build`{how}.  See docs/operator/trouble.md.
route:
  receiver: operator
  group_by: [alertname]
  group_wait: 30s
  group_interval: 5m
  repeat_interval: 4h
  routes:
    - matchers: [severity = critical] # at once, and again each hour
      receiver: operator
      group_wait: 2s
      group_interval: 1m
      repeat_interval: 1h
    - matchers: [severity = info] # once a day is enough
      receiver: digest
      group_wait: 10m
      group_interval: 1h
      repeat_interval: 1d
receivers:
  - name: operator
{receiver}
  - name: digest
{receiver}
inhibit_rules:
  # while Kafka cannot be seen, what is derived from it says nothing
  - source_matchers: [alertname = ExporterBlind]
    target_matchers: [alertname =~ "LagBeyondAVisit|FeedSilent|DeadLetters|BrokerBehind"]
  # a broker that is down says why copies are not in step
  - source_matchers: [alertname = BrokerDown]
    target_matchers: [alertname = PartitionsUnderReplicated]
"""
WEBHOOK = """\
    webhook_configs: [{{url: {url}, send_resolved: true}}]"""
NOBODY = """\
    # shown on Alertmanager's page only; `nightwire dashboards build --webhook URL` tells somebody"""


def alertmanager_config(webhook: str | None = None) -> str:
    """Return Alertmanager's configuration, as YAML.

    Args:
        webhook: URL that gets each group of alerts as JSON; without one they are only shown on its
            page.
    """
    receiver = WEBHOOK.format(url=json.dumps(webhook)) if webhook else NOBODY
    return CONFIG.format(receiver=receiver, how=" --webhook" if webhook else "")
