"""The options of ``nightwire gateway serve``, but for those of TLS."""

from collections.abc import Mapping
from pathlib import Path

import click

from nightwire.core.cli import (
    Duration,
    bootstrap_option,
    completion,
    metrics_port_option,
    registry_option,
    with_options,
)
from nightwire.gateway.cli.serve_defaults import shown
from nightwire.gateway.cli.tls_options import FILE, TLS_OPTIONS
from nightwire.gateway.net.access import LOCAL
from nightwire.gateway.voevent.roles import ACTED_ON, ROLES

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

GENERAL_OPTIONS = (
    click.option(
        "--authors",
        metavar="HOST:PORT",
        help=f"Where authors send events; port 0 takes a free one.{shown('authors')}",
    ),
    click.option(
        "--remote",
        "remotes",
        metavar="HOST[:PORT]",
        multiple=True,
        help="VTP broker to subscribe to; repeatable.  [default port: 8099]",
    ),
    click.option(
        "--remote-filter",
        "remote_filters",
        metavar="XPATH",
        multiple=True,
        help="Ask remote brokers for events that match; repeatable, any of them suffices.",
    ),
    click.option(
        "--remote-replay",
        "remote_replay",
        type=Duration(),
        default="0s",
        show_default=True,
        help="Ask remote brokers, when first connected, for what came so long before; gateways know how.",
    ),
    click.option(
        "--ivorn",
        help=f"IVOID of this gateway as a broker.{shown('ivorn')}",
    ),
    click.option(
        "--state",
        type=click.Path(file_okay=False, path_type=Path),
        help=f"Folder of the index of known events; one per gateway.{shown('state')}",
    ),
    click.option(
        "--iamalive",
        type=click.FloatRange(0.1, 90),
        default=60,
        show_default=True,
        help="Time between iamalive messages to subscribers [s].",
    ),
    click.option(
        "--author-timeout",
        type=click.FloatRange(0.1),
        default=20,
        show_default=True,
        help="Longest time that an author may take over one event [s].",
    ),
    click.option(
        "--remote-timeout",
        type=click.FloatRange(0.1),
        default=120,
        show_default=True,
        help="A remote broker that is silent for so long is connected to again [s].",
    ),
    click.option(
        "--max-frame",
        type=click.IntRange(1000, 3 << 20),
        default=1 << 20,
        show_default=True,
        help="Longest event taken [byte].",
    ),
    click.option(
        "--subscriber-max-frame",
        type=click.IntRange(1000, 3 << 20),
        default=99_999,
        show_default=True,
        help="Longest event sent [byte]; a Comet subscriber hangs up at longer ones.",
    ),
    click.option(
        "--remember",
        "remembered_days",
        type=click.FloatRange(0.01),
        default=30,
        show_default=True,
        help="How long an event is known, so that its copies are none [d].",
    ),
    click.option(
        "--ring-events",
        type=click.IntRange(10),
        default=20_000,
        show_default=True,
        help="Recent events held in memory; a subscriber that is further behind is served from Kafka.",
    ),
    click.option(
        "--accounts/--no-accounts",
        default=None,
        help="Account for the records of `voevents`; of several gateways on one Kafka, let one do so.  "
        "[default: yes; beside the running stack's gateway no]",
    ),
    click.option(
        "--test-event",
        "test_interval",
        type=Duration(),
        metavar="INTERVAL",
        help="Give subscribers an event of role test at the start and every so often: 1h.  [default: never]",
    ),
)

FEED_OPTIONS = (
    click.option(
        "--subscribers",
        metavar="HOST:PORT",
        help=f"Where subscribers get events; port 0 takes a free one.{shown('subscribers')}",
    ),
    click.option(
        "--feed",
        "feed_topics",
        metavar="TOPIC",
        shell_complete=completion.filter_topics,
        multiple=True,
        help="Give them the alerts of a filter topic, filter.OWNER.NAME, as VOEvents; repeatable.",
    ),
    click.option(
        "--feed-role",
        "feed_roles",
        metavar="ROLE",
        multiple=True,
        type=click.Choice(ROLES),
        help="Give them events of this role; repeatable.  [default: every role]",
    ),
    click.option(
        "--replay",
        type=Duration(),
        default="1h",
        show_default=True,
        help="A subscriber that returns goes on after its last ack, at most so far back; 0s: never.",
    ),
    click.option(
        "--config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File of feeds, a table [feeds.NAME] each; [feeds.voevents] is the one of these options.",
    ),
)

GCN_OPTIONS = (
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

CONNECTION_OPTIONS = (
    click.option(
        "--author-allow",
        metavar="CIDR",
        multiple=True,
        default=LOCAL,
        show_default=True,
        help="Network that authors may connect from; repeatable.",
    ),
    click.option(
        "--author-deny",
        metavar="CIDR",
        multiple=True,
        help="Network that authors may not connect from, even where it is allowed; repeatable.",
    ),
    click.option(
        "--subscriber-allow",
        metavar="CIDR",
        multiple=True,
        default=LOCAL,
        show_default=True,
        help="Network that subscribers may connect from; repeatable.",
    ),
    click.option(
        "--subscriber-deny",
        metavar="CIDR",
        multiple=True,
        help="Network that subscribers may not connect from, even where it is allowed; repeatable.",
    ),
    click.option(
        "--max-connections",
        type=click.IntRange(1),
        default=4096,
        show_default=True,
        help="Most connections at once, for authors and for subscribers each.",
    ),
    click.option(
        "--max-per-address",
        type=click.IntRange(1),
        default=2048,
        show_default=True,
        help="Most of them from one address, or from one /64 of IPv6.",
    ),
    click.option(
        "--frame-timeout",
        type=click.FloatRange(0.1),
        default=20,
        show_default=True,
        help="Longest time that a peer may take from the first byte of a message to its last, "
        "and over a TLS handshake [s].",
    ),
    click.option(
        "--author-memory",
        type=click.IntRange(4),
        default=64,
        show_default=True,
        help="Most memory for incomplete messages of all peers, and as much for authors' events on their way "
        "to Kafka [MiB].",
    ),
    click.option(
        "--max-depth",
        type=click.IntRange(8, 64),
        default=64,
        show_default=True,
        help="Deepest nesting of elements in an event; those of the standard have 9 at most.",
    ),
    *(
        click.option(
            f"--tls-{role}",
            metavar="HOST:PORT",
            help=f"Where {role} come by TLS, beside --{role}; with --tls-client-ca from everywhere.",
        )
        for role in ("authors", "subscribers")
    ),
    click.option(
        "--tls-client-ca",
        type=FILE,
        help="Certificates (PEM) that must have signed those of peers that come by TLS.  "
        "[default: they need none]",
    ),
)

HANDLER_OPTIONS = (
    click.option(
        "--cmd",
        "commands",
        metavar="COMMAND",
        multiple=True,
        help="Run COMMAND for each event, the packet on its standard input; repeatable.",
    ),
    click.option("--print-event", is_flag=True, help="Print each event to standard output."),
    click.option("--save-event", is_flag=True, help="Write each event to a file named after its IVORN."),
    click.option(
        "--save-event-directory",
        metavar="DIR",
        help="Where --save-event writes to.  [default: the working directory]",
    ),
    click.option(
        "--handler",
        "plugins",
        metavar="NAME",
        multiple=True,
        help="Give each event to the Python plug-in NAME (entry points nightwire.handlers); repeatable.",
    ),
    click.option(
        "--handler-option",
        "plugin_options",
        metavar="NAME.KEY=VALUE",
        multiple=True,
        help="Option of a plug-in; repeatable.",
    ),
    click.option(
        "--handle-role",
        "roles",
        metavar="ROLE",
        multiple=True,
        type=click.Choice(ROLES),
        default=ACTED_ON,
        show_default=True,
        help="Handlers act on events of this role; repeatable.",
    ),
    click.option(
        "--handler-jobs",
        "jobs",
        type=click.IntRange(1, 256),
        default=4,
        show_default=True,
        help="Most runs of one command at once; further events wait in Kafka.",
    ),
    click.option(
        "--handler-timeout",
        "timeout",
        type=click.FloatRange(0.1),
        default=60,
        show_default=True,
        help="A handler that takes longer over an event is killed [s].",
    ),
    click.option(
        "--catch-up/--no-catch-up",
        default=True,
        show_default=True,
        help="After a restart, handlers act on what came meanwhile.",
    ),
)

SIGNATURE_OPTIONS = (
    click.option(
        "--require-signature",
        "require_signature",
        multiple=True,
        type=click.Choice(["authors", "brokers", "subscribers"]),
        help="Take events of authors or of remote brokers, or let subscribers in, only with a trusted "
        "OpenPGP signature; repeatable.",
    ),
    click.option(
        "--keyring",
        type=click.Path(path_type=Path),
        help="Folder of trusted public keys, read again when it changes.",
    ),
    click.option(
        "--signature-policy",
        type=FILE,
        help="TOML table of who may sign for whom, read again when it changes.  "
        "[default: a key signs for the author whose IVORN is its name]",
    ),
    click.option(
        "--sign-key",
        type=FILE,
        help="Secret key that signs our answers to remote brokers; its password: NIGHTWIRE_SIGN_PASSWORD.",
    ),
    click.option(
        "--answer-timeout",
        type=click.FloatRange(0.1),
        default=20,
        show_default=True,
        help="Longest time that a subscriber may take over a signed answer, where that is required [s].",
    ),
)

serve_options = with_options(
    (
        bootstrap_option,
        *GENERAL_OPTIONS,
        *FEED_OPTIONS,
        registry_option,
        *GCN_OPTIONS,
        *CONNECTION_OPTIONS,
        *TLS_OPTIONS,
        *HANDLER_OPTIONS,
        *SIGNATURE_OPTIONS,
        metrics_port_option,
    )
)
"""Gives a command all options of ``serve``."""


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
