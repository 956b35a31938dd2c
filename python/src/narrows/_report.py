"""Reports, as the program writes them as JSON."""

from __future__ import annotations

import html
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from . import _narrows


class Report(Mapping[str, Any]):
    """The report of a run, a mapping with the names of `--json`: `report["directions"][0]["dropped_packets"]`.

    `str(report)` is the summary that the program prints.
    """

    def __init__(self, report: _narrows.Report) -> None:
        self._report = report

    @classmethod
    def parse(cls, json_text: str) -> Report:
        """Parses the JSON of `narrows run --json` and similar commands."""
        return cls(_narrows.Report.parse(json_text))

    @cached_property
    def _contents(self) -> dict[str, Any]:
        contents: dict[str, Any] = json.loads(self._report.to_json())
        return contents

    def __getitem__(self, key: str) -> Any:
        return self._contents[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)

    @property
    def trust(self) -> str:
        """The accuracy of the figures: `exact`, `accurate`, `mostly accurate` or `not accurate`."""
        return self._report.trust

    @property
    def trust_line(self) -> str:
        """The accuracy in one line, with the reasons against it."""
        return self._report.trust_line

    @property
    def is_accurate(self) -> bool:
        """Whether `trust` is not `not accurate`: no lateness bound was broken, and the host lost next to nothing."""
        return self.trust != "not accurate"

    @property
    def summary(self) -> str:
        """The summary that a run prints at its end, about a dozen lines."""
        return self._report.summary(shutil.get_terminal_size((100, 24)).columns)

    @property
    def text(self) -> str:
        """The full report."""
        return self._report.text()

    def direction(self, link: str) -> dict[str, Any]:
        """Returns the figures of a direction such as `access.down`, or of a link that has only one. Those of a shared medium
        and of a pipe are `radio.up` and `radio.down`.
        """
        known = named_directions(self)
        found = [known[name] for name in (link, f"{link}.up", f"{link}.down") if name in known]
        if len(found) != 1:
            what = "has two directions" if found else "is no direction"
            raise KeyError(f"{link!r} {what}: {', '.join(known)}")
        return found[0]

    def to_json(self) -> str:
        """Returns the report as JSON, as the program writes it."""
        return self._report.to_json()

    def __str__(self) -> str:
        return self.summary

    def __repr__(self) -> str:
        return f"<narrows.Report {self['title']!r}: {self.trust}>"

    def _repr_html_(self) -> str:
        colour = {"mostly accurate": "#b58900", "not accurate": "#c0392b"}.get(self.trust, "#2e8b57")
        rows = "".join(_row(one) for one in self["directions"])
        head = "".join(f"<th>{name}</th>" for name in ("link", "asked", "offered", "delivered", "dropped", "used"))
        return (
            f"<div><b>{html.escape(self['title'])}</b> "
            f'<span style="color:{colour}">&#9679; {html.escape(self.trust_line)}</span>'
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )


def named_directions(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The directions of a report by name. Those of a shared medium and of a pipe have one name there, and end in `.up` and
    `.down` here.
    """
    directions: list[dict[str, Any]] = report["directions"]
    count = Counter(one["link"] for one in directions)
    lanes = (".up", ".down")
    return {one["link"] + (lanes[one["lane"]] if count[one["link"]] > 1 else ""): one for one in directions}


def _row(one: Mapping[str, Any]) -> str:
    used = one.get("utilisation_share")
    cells = [
        one["link"],
        one["asked"],
        f"{one['offered']['packets']:,}",
        f"{one['delivered']['packets']:,}",
        f"{one['dropped_packets']:,}",
        "" if used is None else f"{100 * used:.0f} %",
    ]
    return "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>"
