"""A flow as a picture: a tree for terminals, and SVG.  Pure."""

import io
import re

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from nightwire.flows.model import Flow, Stone

WIDTH = 110
"""Width of the picture. [character]"""
FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def tree(flow: Flow) -> Tree:
    """Return *flow* as a tree; a stone with several inputs is drawn whole at the first."""
    root, drawn = Tree(f"[bold]{flow.name}[/]"), set[str]()
    for source in flow.sources.values():
        text = escape(f"{source.name}: {source.topic}{_at(source.worker)}")
        _grow(root.add(text), flow, source.name, drawn)
    return root


def _grow(branch: Tree, flow: Flow, node: str, drawn: set[str]) -> None:
    ports = flow.stones[node].ports if node in flow.stones else ("",)
    for port in ports:
        for one in flow.followers(node, port):
            text = escape(f"{port and port + ' → '}{one.name}: {_describe(one)}{_at(one.worker)}")
            if one.name in drawn:
                branch.add(f"{text} (see above)")
                continue
            drawn.add(one.name)
            _grow(branch.add(text), flow, one.name, drawn)


def _describe(stone: Stone) -> str:
    keys = [*stone.spec.required] or ["where"]
    value = str(stone.options.get(keys[0], "python" if "python" in stone.options else ""))
    return f"{stone.kind} {value}".strip()


def _at(worker: str) -> str:
    return f" (at {worker})" if worker else ""


def svg(flow: Flow) -> str:
    """Return the tree of *flow* as SVG, which loads nothing from other sites."""
    console = Console(width=WIDTH, record=True, file=io.StringIO())
    console.print(tree(flow))
    return FONTS.sub("", console.export_svg(title=flow.name))
