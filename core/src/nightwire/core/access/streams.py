"""The streams of a community broker: filters whose output is `broker.<name>.<stream>`.  Pure.

Core knows filters by their verb alone, so a stream is the words of `nightwire filter submit`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from nightwire.schemas.topics import broker_topic

EVERYTHING = "WHERE 1 = 1"
"""The condition of a stream of all alerts, which differ from the survey's only in their fields."""


def stream_filters(
    broker: str, surveys: Sequence[str], files: Sequence[Path], *, lite: bool
) -> Iterator[list[str]]:
    """Yield the words of `nightwire filter submit` for each stream of *broker*.

    A stream has the name of its filter's file, or ``lite``; with several surveys, the survey
    follows.

    Args:
        broker: Name of the broker.
        surveys: The surveys whose alerts it takes.
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
