"""Figures of repeated runs, as SVG: rows of marks, one per run, with a bar at the median."""

import math
import statistics
from dataclasses import dataclass
from html import escape

# The colours of narrows's own figures: colour-blind readers can distinguish them.
LIGHT = ["#0072b2", "#d55e00", "#009e73", "#b35c94"]
DARK = ["#5ab0f2", "#ff8c42", "#2fd0a0", "#e59bca"]
ROW, WIDTH, GAP, LEFT, TOP = 34, 300, 36, 150, 116


@dataclass
class Panel:
    """One quantity. `series` are (name, colour number, values per row)."""

    title: str
    unit: str
    series: list
    extent: tuple
    mark: float | None = None


def ticks(low, high):
    """Round numbers from `low` to `high` or beyond, four to seven of them."""
    rough = (high - low) / 4 or 1
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
    return [low + step * number for number in range(math.ceil((high - low) / step - 1e-9) + 1)]


def strips(title, note, rows, panels):
    """`rows` are the names of the compared items; all panels share them."""
    height = TOP + ROW * len(rows) + 62
    width = LEFT + (WIDTH + GAP) * len(panels)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Inter, \'Helvetica Neue\', \'DejaVu Sans\', Arial, sans-serif" font-size="14">',
        style(),
        f'<rect class="ground" width="{width}" height="{height}"/>',
        text("title", 20, 34, title),
        text("note", 20, 58, note),
    ]
    for number, name in enumerate(rows):
        out.append(text("end", LEFT - 14, middle(number) + 5, name))
    for number, panel in enumerate(panels):
        out += draw(panel, LEFT + number * (WIDTH + GAP), len(rows))
    return "\n".join(out) + "\n</svg>\n"


def middle(row):
    return TOP + ROW * (row + 0.5)


def draw(panel, left, rows):
    low, high = panel.extent
    if high is None:
        high = max(value for _, _, of in panel.series for values in of for value in values)
    at = ticks(low, high)
    high = at[-1]

    def place(value):
        return left + WIDTH * (value - low) / (high - low)

    bottom = TOP + ROW * rows
    yield text("heading", left, TOP - 28, panel.title)
    for row in range(0, rows, 2):
        yield f'<rect class="band" x="{left}" y="{TOP + ROW * row}" width="{WIDTH}" height="{ROW}"/>'
    for value in at:
        yield f'<path class="grid" d="M{place(value):.1f} {TOP}V{bottom}"/>'
        yield text("tick middle", place(value), bottom + 20, f"{value:g}")
    if panel.unit:
        yield text("tick middle", left + WIDTH / 2, bottom + 42, panel.unit)
    if panel.mark is not None:
        yield f'<path class="mark" d="M{place(panel.mark):.1f} {TOP}V{bottom}"/>'
    legend = left + WIDTH
    for name, colour, _ in reversed(panel.series):
        if name:
            yield text("tick end", legend, TOP - 10, name)
            legend -= 10 * len(name) + 8
            yield f'<circle class="c{colour}" cx="{legend:.1f}" cy="{TOP - 15}" r="4"/>'
            legend -= 16
    lane = ROW / len(panel.series)
    for number, (_, colour, of) in enumerate(panel.series):
        for row, values in enumerate(of):
            y = TOP + ROW * row + lane * (number + 0.5)
            for place_of, rise in spread([place(value) for value in values], lane):
                yield f'<circle class="run c{colour}" cx="{place_of:.1f}" cy="{y + rise:.1f}" r="2.4"/>'
            x = place(statistics.median(values))
            yield f'<path class="median c{colour}" d="M{x:.1f} {y - lane * 0.4:.1f}v{lane * 0.8:.1f}"/>'


def spread(places, lane):
    """Moves marks that would overlap above and below in turn, as far as the lane has room."""
    steps = [0, 1, -1, 2, -2] if lane > 25 else [0, 1, -1]
    before, turn = -math.inf, 0
    for place in sorted(places):
        turn = turn + 1 if place - before < 4 else 0
        before = place
        yield place, steps[turn % len(steps)] * lane * 0.13


def text(kind, x, y, content):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(content)}</text>'


def style():
    def colours(names):
        return "".join(f".c{number}{{fill:{name};stroke:{name}}}" for number, name in enumerate(names))

    return (
        "<style>\n.ground{fill:#fff}text{fill:#222}.title{font-size:20px;font-weight:600}"
        ".heading{font-size:15px;font-weight:600}.note{fill:#555}.tick{font-size:13px;fill:#444}"
        ".middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#dcdcdc}.band{fill:#f5f6f8}"
        ".mark{stroke:#777;stroke-dasharray:5 4}.run{fill-opacity:.55;stroke:none}.median{stroke-width:3;fill:none}"
        f"{colours(LIGHT)}.run{{stroke:none}}\n"
        "@media (prefers-color-scheme: dark){.ground{fill:#16181c}text{fill:#eee}.note{fill:#aaa}.tick{fill:#bbb}"
        f".grid{{stroke:#30343a}}.band{{fill:#1d2026}}.mark{{stroke:#888}}{colours(DARK)}.run{{stroke:none}}}}\n</style>"
    )
