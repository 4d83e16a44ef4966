"""The option ``--survey`` of verbs that want a survey which is described."""

import click


class SurveyName(click.ParamType):  # type: ignore[type-arg]
    """The name of a survey that nightwire knows; errors say which those are."""

    name = "survey"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return *value*, where there is such a survey."""
        if value not in (known := _known()):
            self.fail(f"no survey {value!r}; there are: {', '.join(known)}", param, ctx)
        return value

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        """Return what there is to choose from."""
        return f"There are: {', '.join(_known())}; or describe one of your own (NIGHTWIRE_SURVEYS=folder)."


def _known() -> list[str]:
    from nightwire.schemas import SchemaError, surveys

    try:
        return surveys()
    except SchemaError as error:
        raise click.UsageError(str(error)) from error


survey_option = click.option(
    "--survey",
    required=True,
    type=SurveyName(),
    metavar="NAME",
    help="Survey that the alerts are of: lsst, ztf, …",
)
