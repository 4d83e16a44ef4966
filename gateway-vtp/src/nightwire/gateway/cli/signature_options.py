"""The options of ``nightwire gateway serve`` that are about signatures."""

from pathlib import Path

import click

from nightwire.core.cli import with_options

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

OPTIONS = (
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
        type=_FILE,
        help="TOML table of who may sign for whom, read again when it changes.  "
        "[default: a key signs for the author whose IVORN is its name]",
    ),
    click.option(
        "--sign-key",
        type=_FILE,
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
SIGNATURE_OPTIONS = {
    "require_signature": "required",
    "keyring": "keyring",
    "signature_policy": "policy",
    "sign_key": "key",
    "answer_timeout": "answer_timeout",
}
"""The name of each option, and of the setting that it is."""


signature_options = with_options(OPTIONS)
"""Gives a command the options of signatures."""
