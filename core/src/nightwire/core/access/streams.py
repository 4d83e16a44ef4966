"""The streams that a community broker orders: filters whose output is `broker.<name>.<stream>`.  Pure.

Core knows filters by their verb alone, so an order is the words of `nightwire filter submit`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from nightwire.schemas.topics import broker_topic

EVERYTHING = "WHERE 1 = 1"
"""The condition of a stream that differs from the survey's only by what its alerts hold."""


def orders(broker: str, surveys: Sequence[str], files: Sequence[Path], *, lite: bool) -> Iterator[list[str]]:
    """Yield what has to be submitted, in the broker's name, for each of its streams.

    A stream is called like its filter's file, or ``lite``; where there are several surveys, with the survey
    behind.

    Args:
        broker: Whose.
        surveys: Those whose alerts it takes.
        files: Its filters.
        lite: Whether alerts are sent without stamps and history.

    Raises:
        NameError_: A file's name cannot be part of a topic.
    """
    texts = [(file.stem, [str(file)]) for file in files]
    if lite and not files:
        texts = [("lite", ["--sql", EVERYTHING])]
    for survey in surveys:
        for name, text in texts:
            stream = name if len(surveys) == 1 else f"{name}-{survey}"
            output = broker_topic(broker, stream)
            words = [*text, "--name", stream, "--owner", broker, "--survey", survey, "--cap", "0"]
            yield [*words, "--output", output, *(["--lite"] if lite else [])]
