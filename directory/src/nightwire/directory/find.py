"""`find`: one question to the directory."""

from typing import TYPE_CHECKING

from nightwire.directory.answers import Answer, rows_of

if TYPE_CHECKING:
    from nightwire.core.runtime import Endpoints


def find(sql: str, *, bootstrap: str | None = None) -> Answer:
    """Return the answer of the directory to *sql*: one SELECT over its views.

    The directory's process answers; where none is known, its log is read from Kafka.

    Args:
        sql: Such as ``SELECT name, state FROM processes``.
        bootstrap: Kafka's address; else that of the environment or of the running stack.

    Raises:
        QueryError: The question is refused; the message says why.
        SiteHttpError: The directory's process refuses.
        NoStackError: There is no Kafka to ask.
        KafkaException: Kafka cannot be reached, or refuses.
    """
    from nightwire.core.kafka import login
    from nightwire.core.runtime import find_endpoints
    from nightwire.core.runtime.site_http import NobodyAnswersError, SiteHttpError, request
    from nightwire.directory.model import QueryError

    where = find_endpoints(bootstrap)
    if where.directory is None:
        return read_log(where, sql)
    try:
        answer = request("POST", f"{where.directory}/query", json={"sql": sql}, login=login(where.kafka))
    except NobodyAnswersError:
        return read_log(where, sql)
    except SiteHttpError as error:
        raise QueryError(str(error)) from error
    return Answer(rows_of(answer.json()), where)


def read_log(where: "Endpoints", sql: str) -> Answer:
    """Return the answer to *sql* by reading the directory's log from the Kafka of *where*.

    Raises:
        QueryError: The question is refused; the message says why.
        KafkaException: Kafka cannot be reached, or refuses.
    """
    from nightwire.core.presence import site_name
    from nightwire.directory.following import load
    from nightwire.directory.model import SiteRows, View

    view, registry = View(), where.schema_registry or ""
    try:
        load(where.kafka, SiteRows(view, site_name(), where.kafka, registry), registry)
        return Answer(view.query(sql), where)
    finally:
        view.close()
