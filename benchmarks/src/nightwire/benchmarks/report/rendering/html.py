"""Pieces of HTML that the page is made of.  Pure."""

from collections.abc import Iterable, Sequence
from html import escape


def table(head: Sequence[tuple[str, bool]], rows: Iterable[str], *, kind: str = "cards") -> str:
    """Return a table; *head* has each column's title and whether it is of numbers, *rows* are ``<tr>``."""
    cells = "".join(
        f'<th class="n">{escape(title)}</th>' if numbers else f"<th>{escape(title)}</th>"
        for title, numbers in head
    )
    body = "\n".join(rows)
    return f'<table class="{kind}">\n<thead><tr>{cells}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>'


def folded(title: str, content: str, *, closed: bool = True) -> str:
    """Return *content* under a line that opens it."""
    opened = "" if closed else " open"
    return f"<details{opened}><summary>{escape(title)}</summary>\n{content}\n</details>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Return names and what is to be said of each; empty ones are left out."""
    said = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in pairs if value)
    return f"<dl>{said}</dl>" if said else ""


def note(text: str) -> str:
    """Return a paragraph; of several lines the first, and all of them below it, folded."""
    first, _newline, rest = text.strip().partition("\n")
    if not rest:
        return f"<p>{escape(first)}</p>"
    return f"<p>{escape(first)}</p>\n" + folded("all of it", f"<pre>{escape(text.strip())}</pre>")


def command(words: str) -> str:
    """Return *words*, with the command of ours that they end in as such."""
    before, colon, typed = words.partition(": nightwire ")
    return f"{escape(before)}: <kbd>nightwire {escape(typed)}</kbd>" if colon else escape(words)


def anchor(*words: str) -> str:
    """Return what *words* are linked by."""
    kept = "".join(letter if letter.isalnum() else " " for letter in " ".join(words).lower())
    return "-".join(kept.split())
