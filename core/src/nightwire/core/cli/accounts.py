"""The verb `nightwire accounts`."""

import json

import click

from nightwire.core.cli.options import bootstrap_option, json_option


@click.command()
@bootstrap_option
@json_option
def accounts(bootstrap: str | None, as_json: bool) -> None:
    """Prove that in = out: what each stage read, and what became of it.

    Exits 1 when ranges overlap or leave a gap, or when classes do not add up.

    \b
    Example:
      nightwire accounts --json
    """
    from nightwire.core.accounting import discrepancies, read_accounts, totals
    from nightwire.core.cli.tables import stage_table
    from nightwire.core.runtime import find_endpoints

    known = read_accounts(find_endpoints(bootstrap).kafka)
    wrong = discrepancies(known)
    if as_json:
        stages = [vars(total) for total in totals(known)]
        click.echo(json.dumps({"stages": stages, "discrepancies": wrong}, indent=2))
    else:
        from rich.console import Console

        Console().print(stage_table(totals(known)))
        for line in wrong:
            click.secho(f"wrong: {line}", fg="red", err=True)
    raise SystemExit(1 if wrong else 0)
