"""Converts Python values to the syntax of scenario files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from os import PathLike, fspath
from typing import Any, Union, cast

Value = Union[str, bool, int, float, timedelta, PathLike[str], Mapping[str, "Value"], Iterable["Value"]]
"""A value of a key: text with a unit (`"10mbit"`), a number, a `timedelta`, a table, or a list."""


def time_text(value: timedelta | str) -> str:
    """A time in file syntax."""
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)}us"
    return value


def toml(value: Value) -> str:
    """A value in file syntax."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, timedelta):
        return quoted(time_text(value))
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, PathLike):
        return quoted(fspath(value))
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Value]", value)
        return "{ " + ", ".join(f"{key_text(key)} = {toml(item)}" for key, item in table.items()) + " }"
    return "[" + ", ".join(toml(item) for item in value) + "]"


def plain(value: Value) -> str:
    """A value as written after a flag or in an assignment: text without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        return time_text(value)
    if isinstance(value, PathLike):
        return fspath(value)
    return toml(value)


def quoted(text: str) -> str:
    """Quoted text. JSON's escapes are valid in TOML, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def key_text(key: str) -> str:
    """A key, quoted if necessary."""
    bare = key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
    return key if bare else quoted(key)


def document(contents: Mapping[str, Value]) -> str:
    """A whole file: its keys first, then its tables."""
    keys: list[str] = []
    tables: list[str] = []
    for key, value in contents.items():
        name = key_text(key)
        inner = _tables(value)
        if inner is not None:
            for part, item in inner:
                head = f"[[{name}]]" if part is None else f"[{name}.{key_text(part)}]"
                tables.append(_table(head, item))
        else:
            keys.append(f"{name} = {toml(value)}\n")
    return "".join(keys + tables)


def _tables(value: Value) -> list[tuple[str | None, Mapping[str, Value]]] | None:
    """The tables inside a table or a list, with their names; None if it contains anything else."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, (list, tuple)):
        items = [(None, item) for item in value]
    return items if items and all(isinstance(item, Mapping) for _, item in items) else None


def _table(head: str, contents: Mapping[str, Value]) -> str:
    lines = [f"{key_text(key)} = {toml(value)}\n" for key, value in contents.items()]
    return "\n" + head + "\n" + "".join(lines)
