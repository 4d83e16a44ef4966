"""The options of ``nightwire gateway serve`` that are about GCN, and its credentials."""

from collections.abc import Mapping

import click

from nightwire.core.cli import with_options

CLIENT_ID, CLIENT_SECRET = "NIGHTWIRE_GCN_CLIENT_ID", "NIGHTWIRE_GCN_CLIENT_SECRET"
PREFIX = "NIGHTWIRE_GCN_KAFKA_"
"""Of variables that set librdkafka's properties for GCN; ``KAFKA_*`` are our own Kafka's."""
OFFICIAL: Mapping[str, str] = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://auth.gcn.nasa.gov/oauth2/token",
}
"""How GCN lets its readers in."""

OPTIONS = (
    click.option(
        "--gcn",
        is_flag=True,
        help="Take the VOEvents of NASA's GCN from its Kafka, with the credentials in "
        f"{CLIENT_ID} and {CLIENT_SECRET}.",
    ),
    click.option(
        "--gcn-topic",
        "gcn_topics",
        metavar="PATTERN",
        multiple=True,
        default=("gcn.classic.voevent.*",),
        show_default=True,
        help="Topics of GCN, with *; repeatable.  They have to hold VOEvents.",
    ),
    click.option(
        "--gcn-bootstrap",
        metavar="HOST:PORT",
        default="kafka.gcn.nasa.gov:9092",
        show_default=True,
        help="GCN's Kafka.",
    ),
    click.option(
        "--gcn-start",
        type=click.Choice(["live", "oldest"]),
        default="live",
        show_default=True,
        help="Where the first start begins: with what comes next, or with all that GCN still has.",
    ),
)
GCN_OPTIONS = ("gcn", "gcn_topics", "gcn_bootstrap", "gcn_start")


gcn_options = with_options(OPTIONS)
"""Gives a command the options of GCN."""


def gcn_properties(env: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's properties for GCN, as the environment *env* says.

    Raises:
        ValueError: There are no credentials; the message says which variables are missing.
    """
    from nightwire.core.kafka import properties

    named = {"sasl.oauthbearer.client.id": CLIENT_ID, "sasl.oauthbearer.client.secret": CLIENT_SECRET}
    given = {name: env[variable] for name, variable in named.items() if env.get(variable)}
    found = {**OFFICIAL, **given, **properties(env, PREFIX)}
    missing = [variable for name, variable in named.items() if not found.get(name)]
    if missing and found["sasl.mechanism"] == "OAUTHBEARER" and found["security.protocol"].startswith("SASL"):
        raise ValueError(f"--gcn: GCN lets in whom it knows; set {' and '.join(missing)} in the environment")
    return found
