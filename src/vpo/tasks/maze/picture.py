"""Pictures of a maze with routes: coloured text for a terminal, PNG or SVG for a page."""

from collections.abc import Sequence
from pathlib import Path

from vpo.tasks.maze.grid import BONUS, DIAMOND, END, GOLD, LAVA, OPEN, START, WALL, Maze
from vpo.util.errors import InputError
from vpo.util.packages import require

# A palette for colour-blind readers (Okabe and Ito), and the nearest terminal colours.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
ANSI = (34, 31, 32, 35, 36, 33)
TILES = {WALL: "#3B3F46", OPEN: "#FFFFFF", START: "#E8EEF7", END: "#E8EEF7", BONUS: "#F2F2F2"}
TILES |= {GOLD: "#F6D776", DIAMOND: "#B9E3F2", LAVA: "#F3A08C"}
SYMBOLS = {WALL: "██", OPEN: " ·", START: " S", END: " E", BONUS: " B", GOLD: " G", DIAMOND: " D", LAVA: " L"}


def text(maze: Maze, routes: Sequence[str] = (), *, colour: bool = True) -> str:
    """The maze as text, two characters a cell; cells of a route, which is a string of moves, show its number."""
    stepped: dict[int, int] = {}
    for index, cells in reversed(list(enumerate(maze.walk(route) for route in routes))):
        stepped |= dict.fromkeys(cells, index)
    lines = []
    for row in range(maze.size):
        line = ""
        for cell in range(row * maze.size, (row + 1) * maze.size):
            number = stepped.get(cell)
            symbol = SYMBOLS[maze.cells[cell]]
            if number is not None:
                symbol = f"{(number + 1) % 10}{symbol[1] if symbol[1] != '·' else ' '}"
                symbol = f"\033[1;{ANSI[number % len(ANSI)]}m{symbol}\033[0m" if colour else symbol
            line += symbol
        lines.append(line)
    return "\n".join(lines)


def svg(maze: Maze) -> str:
    """The maze as an SVG drawing, one unit a cell."""
    parts = ['<g stroke="#C9CCD1" stroke-width="0.02">']
    symbols = ['<g text-anchor="middle" style="font-size:0.5px" class="tiles">']
    for cell, tile in enumerate(maze.cells):
        row, column = divmod(cell, maze.size)
        parts.append(f'<rect x="{column}" y="{row}" width="1" height="1" fill="{TILES[tile]}"/>')
        if tile not in (WALL, OPEN):
            symbols.append(f'<text x="{column + 0.5}" y="{row + 0.68}">{tile}</text>')
    body = "".join([*parts, "</g>", *symbols, "</g>"])
    return f'<svg viewBox="0 0 {maze.size} {maze.size}" role="img" aria-label="maze {maze.id}">{body}</svg>'


def points(maze: Maze, route: str) -> str:
    """A route, a string of moves, as the points of an SVG line through the centres of its cells."""
    return " ".join(f"{cell % maze.size + 0.5},{cell // maze.size + 0.5}" for cell in maze.walk(route))


def draw(maze: Maze, routes: Sequence[str], path: str | Path, *, labels: Sequence[str] = ()) -> None:
    """Draw the maze with routes, strings of moves, as coloured lines into a .png or .svg file."""
    if Path(path).suffix not in (".png", ".svg"):
        raise InputError(f"{path}: a picture must end in .png or .svg")
    figure_module = require("matplotlib.figure", "a picture", extra="report")
    patches = require("matplotlib.patches", "a picture", extra="report")
    figure = figure_module.Figure(figsize=(4.2, 4.2 + (0.3 if labels else 0)), layout="constrained")
    axes = figure.add_subplot()
    for cell, tile in enumerate(maze.cells):
        row, column = divmod(cell, maze.size)
        square = patches.Rectangle((column, row), 1, 1, facecolor=TILES[tile], edgecolor="#C9CCD1", linewidth=0.5)
        axes.add_patch(square)
        if tile in (START, END, GOLD, DIAMOND, LAVA, BONUS):
            axes.text(column + 0.5, row + 0.52, tile, ha="center", va="center", fontsize=9, color="#444444")
    paths = [maze.walk(route) for route in routes]
    for number, cells in enumerate(paths):
        # Routes that share a cell run side by side.
        aside = 0.5 + 0.5 * (number - (len(paths) - 1) / 2) / max(len(paths), 2)
        xs = [cell % maze.size + aside for cell in cells]
        ys = [cell // maze.size + aside for cell in cells]
        label = labels[number] if number < len(labels) else None
        axes.plot(xs, ys, color=COLOURS[number % len(COLOURS)], linewidth=2.2, alpha=0.9, label=label)
        axes.plot(xs[-1:], ys[-1:], "o", color=COLOURS[number % len(COLOURS)], markersize=4)
    axes.set(xlim=(0, maze.size), ylim=(maze.size, 0), aspect="equal")
    axes.axis("off")
    if labels:
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
