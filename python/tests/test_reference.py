"""The reference of the package in the book is what its docstrings say. NARROWS_BLESS=1 writes it."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import narrows
import narrows.executors

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python-reference.md"
HEAD = """# Python: reference

Made from the docstrings of the package; [Python](python.md) shows how to use it. Types are checked by mypy and pyright.
"""
# What the interpreter or Gymnasium gives, and what notebooks call.
NOT_SHOWN = {"count", "index", "from_bytes", "with_traceback", "add_note", "metadata"}


def words(thing: Any) -> str:
    text = inspect.getdoc(thing) or ""
    # Indented code is code; a name in one grave accent is one already.
    lines, code = [], False
    for line in text.splitlines():
        if line.startswith(("    ", ">>>")) and not code:
            lines.append("```text")
            code = True
        elif code and line and not line.startswith(("    ", ">>>")):
            while lines and not lines[-1]:
                lines.pop()
            lines += ["```", ""]
            code = False
        lines.append(line.removeprefix("    ") if code else line)
    return "\n".join([*lines, "```"] if code else lines).strip()


def signature(thing: Any) -> str:
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [one.replace(annotation=one.empty) for name, one in found.parameters.items() if name not in ("self", "cls")]
    return str(found.replace(parameters=parameters, return_annotation=found.empty))


def section(name: str, thing: Any) -> str:
    if isinstance(thing, ModuleType) or not (inspect.isclass(thing) or callable(thing)):
        return ""
    shown = f"{name}{signature(thing)}" if not issubclass_of_exception(thing) else name
    parts = [f"## {name}\n\n`{shown}`\n\n{words(thing)}\n"]
    if inspect.isclass(thing):
        if thing.__init__ is not object.__init__ and (text := words(thing.__init__)) and "help(type(self))" not in text:
            parts.append(f"{text}\n")
        rows = [
            f"| `{member}{'' if is_property(found) else signature(found)}` | {row(words(found))} |"
            for member in sorted(vars(thing))
            if not member.startswith("_") and member not in NOT_SHOWN
            for found in [inspect.getattr_static(thing, member)]
            for found in [getattr(found, "__func__", found)]
            if words(found) and (callable(found) or is_property(found))
        ]
        if rows:
            parts.append("| | |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def is_property(found: Any) -> bool:
    return isinstance(found, property) or inspect.isgetsetdescriptor(found) or inspect.ismemberdescriptor(found)


def issubclass_of_exception(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, Exception)


def row(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def test_the_reference_is_what_the_docstrings_say() -> None:
    names = [*(name for name in narrows.__all__ if not name.startswith("_")), "executors.RayExecutor"]
    things = [(name, eval(f"narrows.{name}")) for name in names]
    page = "\n".join([HEAD, *filter(None, (section(name, thing) for name, thing in things))])
    if os.environ.get("NARROWS_BLESS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page, "NARROWS_BLESS=1 writes it"
    # Everything that is public says what it is.
    assert all(words(thing) for _, thing in things if callable(thing))
