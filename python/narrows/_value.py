"""Values of Python in the words of scenario files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from os import PathLike, fspath
from typing import Union

Value = Union[str, bool, int, float, timedelta, PathLike[str], Mapping[str, "Value"], Iterable["Value"]]
"""What a key can be set to: text with its unit (`"10mbit"`), a number, a `timedelta`, a table, a list."""


def time_text(value: timedelta | str) -> str:
    """A time in the words of files."""
    if isinstance(value, timedelta):
        return f"{value // timedelta(microseconds=1)}us"
    return value


def toml(value: Value) -> str:
    """A value as it stands in a file."""
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
        return "{ " + ", ".join(f"{key_text(key)} = {toml(item)}" for key, item in value.items()) + " }"
    return "[" + ", ".join(toml(item) for item in value) + "]"


def plain(value: Value) -> str:
    """A value as it stands behind a flag or an assignment: text without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        return time_text(value)
    if isinstance(value, PathLike):
        return fspath(value)
    return toml(value)


def quoted(text: str) -> str:
    """Text in quotes: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def key_text(key: str) -> str:
    """A key, in quotes where it needs them."""
    bare = key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
    return key if bare else quoted(key)


def document(contents: Mapping[str, Value]) -> str:
    """A whole file: its keys first, then its tables."""
    keys: list[str] = []
    tables: list[str] = []
    for key, value in contents.items():
        name = key_text(key)
        if isinstance(value, Mapping) and value and all(isinstance(item, Mapping) for item in value.values()):
            for inner, item in value.items():
                assert isinstance(item, Mapping)
                tables.append(_table(f"[{name}.{key_text(inner)}]", item))
        elif isinstance(value, (list, tuple)) and value and all(isinstance(item, Mapping) for item in value):
            tables.extend(_table(f"[[{name}]]", item) for item in value if isinstance(item, Mapping))
        else:
            keys.append(f"{name} = {toml(value)}\n")
    return "".join(keys + tables)


def _table(head: str, contents: Mapping[str, Value]) -> str:
    lines = [f"{key_text(key)} = {toml(value)}\n" for key, value in contents.items()]
    return "\n" + head + "\n" + "".join(lines)
