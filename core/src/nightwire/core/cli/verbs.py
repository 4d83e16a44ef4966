"""The `nightwire` command: it collects the verbs of all rooms, and imports the called one alone."""

import ast
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from nightwire.core import __version__

GROUP = "nightwire.commands"


class Verbs(click.Group):
    """A group whose commands are entry points, loaded when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs, in the order of their names."""
        return sorted(entry_points(group=GROUP).names)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with the first line of their help, from their source without an import."""
        entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, _summary(entry)) for entry in entries])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the verb *cmd_name*; a verb that lacks its packages says how to get them."""
        for entry in entry_points(group=GROUP, name=cmd_name):
            return _load(entry)
        return None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs that begin so, without an import, and the options."""
        found = [entry for entry in entry_points(group=GROUP) if entry.name.startswith(incomplete)]
        verbs = [CompletionItem(entry.name, help=_summary(entry)) for entry in found]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb; say which was meant where there is none of that name."""
        close = get_close_matches(args[0], names := self.list_commands(ctx))
        if close and args[0] not in names:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; turn the errors that a person can mend into one line."""
        from nightwire.core.cli.interrupts import answering_interrupts

        try:
            with answering_interrupts():
                return super().invoke(ctx)
        except ModuleNotFoundError as error:
            verb = ctx.invoked_subcommand or ""
            raise click.ClickException(_missing(verb, error)) from error
        except Exception as error:
            if (advice := _advice(error)) is None:
                raise
            raise click.ClickException(advice) from error


def _summary(entry: EntryPoint) -> str:
    """Return the first sentence of the docstring of *entry*'s function; empty without one."""
    import nightwire

    parts = entry.module.split(".")[1:]
    found = (Path(root, *parts).with_suffix(".py") for root in nightwire.__path__)
    for source in (path for path in found if path.exists()):
        for node in ast.parse(source.read_bytes()).body:
            if isinstance(node, ast.FunctionDef) and node.name == entry.attr:
                return (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
    return ""


def _load(entry: EntryPoint) -> click.Command:
    try:
        command: click.Command = entry.load()
    except ModuleNotFoundError as error:
        message = _missing(entry.name, error)

        @click.command(
            entry.name, help=f"(not installed) {message}", context_settings={"ignore_unknown_options": True}
        )
        @click.argument("rest", nargs=-1)
        def command(rest: tuple[str, ...]) -> None:
            raise click.ClickException(message)

    return command


def _missing(verb: str, error: ModuleNotFoundError) -> str:
    from nightwire.core.runtime import install_command

    extras = [extra for entry in entry_points(group=GROUP, name=verb) for extra in entry.extras]
    return f"`nightwire {verb}` needs the package {error.name}: {install_command(*extras)}"


def _advice(error: Exception) -> str | None:
    """Return one line for an *error* that a person can mend, else None."""
    from confluent_kafka import KafkaException

    from nightwire.core.kafka import DeliveryError, error_code, error_text
    from nightwire.core.runtime.disk import full_disk
    from nightwire.core.runtime.endpoints import state_dir
    from nightwire.schemas import MendableError

    folder = state_dir()
    if isinstance(error, KafkaException | DeliveryError) and folder and (why := full_disk(folder)):
        return f"Kafka: {error.args[0]}; {why}"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, KafkaException):
        return f"Kafka: {error_text(error).rstrip('.')}; {_kafka_advice(error_code(error))}"
    return str(error) if isinstance(error, MendableError) else None


def _kafka_advice(code: int) -> str:
    """Return advice for an error of Kafka's."""
    from confluent_kafka import KafkaError

    advice = {
        KafkaError._AUTHENTICATION: "are KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD right?",
        KafkaError.SASL_AUTHENTICATION_FAILED: "are KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD right?",
        KafkaError.TOPIC_AUTHORIZATION_FAILED: "that topic is not yours to read or write",
        KafkaError.GROUP_AUTHORIZATION_FAILED: "the names of your groups begin with your own and a dot",
        KafkaError.CLUSTER_AUTHORIZATION_FAILED: "that is for the operator to do",
        KafkaError._SSL: "KAFKA_SSL_CA_LOCATION=FILE, or KAFKA_SSL_CA_PEM, names who signed it",
    }
    return advice.get(code, "is it running?  (`nightwire status`, `nightwire up`)")


@click.command(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "NIGHTWIRE"},
)
@click.version_option(__version__, prog_name="nightwire")
def main() -> None:
    """A wire service for the night sky.

    Survey alerts with their picture stamps flow through Kafka to everyone who asked for them.

    \b
    Examples:
      nightwire up                                start everything on this machine
      nightwire simulate --alerts 1000            one simulated visit
      nightwire filter submit my.ipynb --name my  your filter, live
      nightwire subscribe filter.me.my            what passed it
      nightwire status --watch                    rates, lag and accounts
      nightwire down                              stop everything
    """
    from nightwire.core.runtime.endpoints import state_dir, use_own_surveys

    use_own_surveys(state_dir())
