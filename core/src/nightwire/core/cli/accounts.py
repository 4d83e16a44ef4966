"""The verb `nightwire accounts`."""

import json

import click

from nightwire.core.cli.options import bootstrap_option, json_option, reached, wide_option


@click.command()
@click.option("--each", is_flag=True, help="Give each filter a line, also those that add up.")
@wide_option
@bootstrap_option
@json_option
def accounts(each: bool, wide: bool, bootstrap: str | None, as_json: bool) -> None:
    """Prove that in = out: what each stage read, and what became of it.

    Filters that add up have one line together; each one that does not has its own.

    Exits 1 when ranges overlap or leave a gap, or when classes do not add up.

    \b
    Example:
      nightwire accounts --json
    """
    from nightwire.core.accounting import discrepancies, read_accounts, totals
    from nightwire.core.cli.tables import show_tables, stage_table

    known = read_accounts(reached(bootstrap).kafka)
    wrong = discrepancies(known)
    if as_json:
        stages = [vars(total) for total in totals(known)]
        click.echo(json.dumps({"stages": stages, "discrepancies": wrong}, indent=2))
    else:
        show_tables(stage_table(totals(known), each=each, wide=wide))
        for line in wrong:
            click.secho(f"wrong: {line}", fg="red", err=True)
    raise SystemExit(1 if wrong else 0)
