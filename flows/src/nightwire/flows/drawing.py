"""A flow as a picture: a tree for terminals, and SVG.  Pure."""

from collections.abc import Iterator
from html import escape

from rich.tree import Tree

from nightwire.flows.model import Flow, Stone

WIDTH, HEIGHT, GAP_X, GAP_Y = 170, 44, 60, 20
"""Size of a box and the distances between two. [px]"""
COLOURS = {"source": "#cfe3ff", "terminal": "#ffe2c4", "stone": "#e8f3e1"}


def tree(flow: Flow) -> Tree:
    """Return *flow* as a tree; a stone with several ways in is drawn whole at the first."""
    root, drawn = Tree(f"[bold]{flow.name}[/]"), set[str]()
    for source in flow.sources.values():
        _grow(root.add(f"{source.name}: {source.topic}{_place(source.at)}"), flow, source.name, drawn)
    return root


def _grow(branch: Tree, flow: Flow, node: str, drawn: set[str]) -> None:
    ports = flow.stones[node].ports if node in flow.stones else ("",)
    for port in ports:
        for one in flow.followers(node, port):
            text = f"{port and port + ' → '}{one.name}: {_about(one)}{_place(one.at)}"
            if one.name in drawn:
                branch.add(f"{text} (see above)")
                continue
            drawn.add(one.name)
            _grow(branch.add(text), flow, one.name, drawn)


def _about(stone: Stone) -> str:
    said = next((str(stone.options[key]) for key in stone.about.needs), "")
    return f"{stone.kind} {said}".strip()


def _place(at: str) -> str:
    return f" (at {at})" if at else ""


def svg(flow: Flow) -> str:
    """Return *flow* as SVG: columns of boxes, each right of all that it gets events from."""
    spots = _spots(flow)
    width = max(x for x, _ in spots.values()) + WIDTH + GAP_X
    height = max(y for _, y in spots.values()) + HEIGHT + GAP_Y
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
            f"<title>{escape(flow.name)}</title>",
            *_lines(flow, spots),
            *_boxes(flow, spots),
            "</svg>\n",
        ]
    )


def _spots(flow: Flow) -> dict[str, tuple[int, int]]:
    """Return where the box of each source and stone begins."""
    column = dict.fromkeys(flow.sources, 0)
    for stone in flow.stones.values():
        column[stone.name] = 1 + max(column[edge.node] for edge in stone.inputs)
    taken: dict[int, int] = {}
    spots: dict[str, tuple[int, int]] = {}
    for name, x in column.items():
        y = taken.get(x, 0)
        taken[x] = y + 1
        spots[name] = (GAP_X // 2 + x * (WIDTH + GAP_X), GAP_Y + y * (HEIGHT + GAP_Y))
    return spots


def _lines(flow: Flow, spots: dict[str, tuple[int, int]]) -> Iterator[str]:
    for stone in flow.stones.values():
        for edge in stone.inputs:
            (x, y), (to_x, to_y) = spots[edge.node], spots[stone.name]
            start, end = (x + WIDTH, y + HEIGHT // 2), (to_x, to_y + HEIGHT // 2)
            bend = (start[0] + end[0]) // 2
            path = f"M{start[0]},{start[1]} C{bend},{start[1]} {bend},{end[1]} {end[0]},{end[1]}"
            yield f'<path d="{path}" fill="none" stroke="#555"/>'
            if edge.port:
                yield f'<text x="{bend}" y="{(start[1] + end[1]) // 2 - 4}">{escape(edge.port)}</text>'


def _boxes(flow: Flow, spots: dict[str, tuple[int, int]]) -> Iterator[str]:
    for name, (x, y) in spots.items():
        stone = flow.stones.get(name)
        kind = "source" if stone is None else "terminal" if stone.about.terminal else "stone"
        about = flow.sources[name].topic if stone is None else _about(stone)
        yield (
            f"<g><title>{escape(about)}</title>"
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
            f'fill="{COLOURS[kind]}" stroke="#555"/><text x="{x + 8}" y="{y + 18}" font-weight="bold">'
            f'{escape(name)}</text><text x="{x + 8}" y="{y + 35}">{escape(about[:26])}</text></g>'
        )
