"""`find`, a query of the directory, and `export`, a document for other programs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from nightwire.directory.answers import EXPORTS, Answer, rows_of

if TYPE_CHECKING:
    from nightwire.core.runtime import Endpoints
    from nightwire.directory.model import View

log = logging.getLogger("nightwire.directory")


def find(sql: str, *, bootstrap: str | None = None) -> Answer:
    """Return the directory's answer to *sql*: one SELECT over its views.

    The directory's process answers; where none does, this site's log is read from Kafka, with a
    warning that other sites are not known then.

    Args:
        sql: Such as ``SELECT name, state FROM processes``.
        bootstrap: Kafka's address; else that of the environment or of the running stack.

    Raises:
        QueryError: The query is refused; the message says why.
        SiteHttpError: The directory's process refuses.
        NoStackError: There is no Kafka to ask.
        KafkaException: Kafka cannot be reached, or refuses.
    """
    from nightwire.core.presence import NobodyAnswersError, SiteHttpError, ask_directory
    from nightwire.core.runtime import find_endpoints
    from nightwire.directory.model import QueryError

    where = find_endpoints(bootstrap)
    try:
        answer = ask_directory(where, "POST", "/query", json={"sql": sql})
    except NobodyAnswersError as error:
        log.warning("%s: this site's log is read instead, other sites are not known", error)
        with log_view(where) as view:
            return Answer(view.query(sql), where)
    except SiteHttpError as error:
        raise QueryError(str(error)) from error
    return Answer(rows_of(answer.json()), where)


def export(format: str, *, bootstrap: str | None = None) -> bytes:
    """Return the document *format* of the site, one of `answers.EXPORTS`.

    The directory's process makes it; where none answers, it is made of the log in Kafka.

    Args:
        format: Such as ``asyncapi``.
        bootstrap: Kafka's address; else that of the environment or of the running stack.

    Raises:
        QueryError: There are too many rows.
        SiteHttpError: The directory's process refuses.
        NoStackError: There is no Kafka to ask.
        KafkaException: Kafka cannot be reached, or refuses.
    """
    from nightwire.core.presence import NobodyAnswersError, ask_directory
    from nightwire.core.runtime import find_endpoints, site_name

    where = find_endpoints(bootstrap)
    with suppress(NobodyAnswersError):
        return ask_directory(where, "GET", f"/export/{format}").content
    with log_view(where) as view:
        return EXPORTS[format][1](view, site_name())


@contextmanager
def log_view(where: "Endpoints") -> Iterator["View"]:
    """Yield the view of the directory's log in the Kafka of *where*, as it is now."""
    from nightwire.core.runtime import site_name
    from nightwire.directory.ingest import load
    from nightwire.directory.model import SiteRows, View

    view, registry = View(), where.schema_registry or ""
    try:
        load(where.kafka, SiteRows(view, site_name(), where.kafka, registry), registry)
        yield view
    finally:
        view.close()
