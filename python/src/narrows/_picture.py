"""Graphics for notebooks: a network as SVG, a series as a figure."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Mapping
from typing import Any

from . import _narrows

_RADIUS = 130
_MOST_TITLE = 90


def topology(explained: Mapping[str, Any], toml: str) -> str:
    """Draws hosts and routers on a circle, and the links between them."""
    links: dict[str, tuple[str, str, str]] = {}
    for one in explained["links"]:
        ends = (one.get("from"), one.get("to"))
        name = str(one["name"]).rsplit(".", 1)[0]
        if name not in links and all(ends):
            links[name] = (str(ends[0]), str(ends[1]), str(one.get("asked", "")))
    nodes = list(dict.fromkeys(end for one in links.values() for end in one[:2]))
    if not nodes or len(nodes) > 60:
        return f"<pre>{html.escape(toml)}</pre>"
    width, height = 3 * _RADIUS + 160, 2 * _RADIUS + 80 if len(nodes) > 2 else 90
    middle = (width / 2, height / 2)
    place: dict[str, tuple[float, float]] = {}
    for at, node in enumerate(nodes):
        angle = math.pi + 2 * math.pi * at / len(nodes)
        across, up = (1.5 * _RADIUS, 0.0) if len(nodes) == 2 else (1.4 * _RADIUS, 1.0 * _RADIUS)
        place[node] = (middle[0] + across * math.cos(angle), middle[1] + up * math.sin(angle))
    parts: list[str] = []
    beside: dict[frozenset[str], list[str]] = {}
    for name, (start, end, _) in links.items():
        beside.setdefault(frozenset((start, end)), []).append(name)
    for name, (start, end, asked) in links.items():
        # Parallel links are drawn side by side.
        (x1, y1), (x2, y2) = (place[node] for node in sorted((start, end)))
        same = beside[frozenset((start, end))]
        aside = 16 * (same.index(name) - (len(same) - 1) / 2) / (math.hypot(x2 - x1, y2 - y1) or 1)
        across, up = aside * (y1 - y2), aside * (x2 - x1)
        x1, y1, x2, y2 = x1 + across, y1 + up, x2 + across, y2 + up
        title = html.escape(f"{name}: {asked}" if asked else name)
        parts.append(
            f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#888" stroke-width="2">'
            f"<title>{title}</title></line>"
            f'<text x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2 - 6:.0f}" text-anchor="middle" font-size="11" '
            f'fill="#888">{html.escape(name)}</text>'
        )
    for node, (x, y) in place.items():
        half = max(26, 4 * len(node) + 8)
        parts.append(
            f'<rect x="{x - half:.0f}" y="{y - 13:.0f}" width="{2 * half}" height="26" rx="6" fill="#2f6f9f"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" font-size="12" fill="#fff">{html.escape(node)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" role="img" aria-label="the network">{"".join(parts)}</svg>'
    )


def figure(series: _narrows.Table, title: str) -> Any:
    """Plots throughput, backlog and drops of each link over time."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise _narrows.NarrowsError("plots need matplotlib: pip install narrows[plot]") from error

    class Shown(Figure):
        """A figure that notebooks display without pyplot."""

        def _repr_png_(self) -> bytes:
            png = io.BytesIO()
            self.savefig(png, format="png", dpi=110)
            return png.getvalue()

    columns = series.to_dict()
    kinds = [("throughput_bps", "Mbit/s", 1e6), ("backlog_packets", "packets waiting", 1.0), ("dropped_packets", "drops", 1.0)]
    drawn = Shown(figsize=(8, 6), layout="constrained")
    axes = drawn.subplots(len(kinds), 1, sharex=True)
    names = dict.fromkeys(
        name for kind, name in zip(columns["kind"], columns["name"]) if kind == "link"
    )
    for axis, (key, label, unit) in zip(axes, kinds):
        for name in names:
            rows = [at for at, other in enumerate(columns["name"]) if other == name and columns["kind"][at] == "link"]
            axis.plot(
                [columns["end_ns"][at] / 1e9 for at in rows],
                [(columns[key][at] or 0) / unit for at in rows],
                label=name,
                linewidth=1.2,
            )
        axis.set_ylabel(label)
        axis.grid(alpha=0.25)
    axes[-1].set_xlabel("virtual time, s")
    if names:
        lines, labels = axes[0].get_legend_handles_labels()
        drawn.legend(lines, labels, loc="outside lower center", ncols=min(len(labels), 6), fontsize="small")
    drawn.suptitle(title if len(title) <= _MOST_TITLE else title[: _MOST_TITLE - 1] + "…", fontsize="medium")
    return drawn
