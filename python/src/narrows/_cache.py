"""Results of a sweep, kept by a hash of what they follow from."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Union

from . import _narrows
from ._scenario import Scenario

Measure = Union[str, Callable[[Any], float]]
"""A figure of a run: its name in `Sweep.figures`, or a function of the result."""


class Cache:
    """Results by the hash of their inputs: one file each, written atomically."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._corrupt: list[Path] = []
        self._unwritten: list[str] = []

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        path = self._path(key)
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        check, _, body = text.partition(b"\n")
        if check.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
            self._corrupt.append(path)
            return None
        found: dict[str, Any] = json.loads(body)
        return found

    def put(self, key: str, result: Mapping[str, Any]) -> None:
        path = self._path(key)
        body = json.dumps(result, sort_keys=True).encode()
        try:
            path.parent.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
                try:
                    file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
                    file.close()
                    os.replace(file.name, path)
                except BaseException:
                    # The file may have been renamed already, if Ctrl-C came in between.
                    Path(file.name).unlink(missing_ok=True)
                    raise
        except OSError as error:
            self._unwritten.append(f"{path}: {error.strerror}")

    def tell(self) -> None:
        """Warns once about cache errors."""
        if self._corrupt:
            count, first = len(self._corrupt), self._corrupt[0]
            warnings.warn(f"{count} damaged results in the cache, made again (first: {first})", stacklevel=3)
        if self._unwritten:
            count, reason = len(self._unwritten), self._unwritten[0]
            warnings.warn(f"{count} results could not be kept in the cache (first: {reason})", stacklevel=3)


def identity_of(
    scenario: Scenario, mode: str, duration: str | None, measures: Mapping[str, Measure], command: Any
) -> str:
    files = [(name, hashlib.sha256(contents).hexdigest()) for name, contents in scenario.files]
    parts = [
        _narrows.__version__,
        mode,
        scenario.to_toml(),
        sorted(files),
        duration,
        sorted((name, measure_identity(one)) for name, one in measures.items()),
        command,
    ]
    return json.dumps(parts, sort_keys=True)


def key_of(identity: str, seed: int) -> str:
    return hashlib.sha256(f"{identity}\n{seed}".encode()).hexdigest()


def measure_identity(measure: Measure) -> str:
    """A figure's name, or a function's name, code and captured values. Functions that it calls are not examined."""
    if isinstance(measure, str):
        return measure
    if isinstance(measure, functools.partial):
        arguments = (measure.args, sorted(measure.keywords.items()))
        return f"{measure_identity(measure.func)} {arguments!r}"
    if not isinstance(measure, FunctionType):
        # A callable object is identified by its class and attributes.
        made = type(measure)
        return f"{made.__module__}.{made.__qualname__} {sorted(vars(measure).items())!r}"
    captured = [cell.cell_contents for cell in measure.__closure__ or ()]
    parts = [_code_identity(measure.__code__), measure.__defaults__, measure.__kwdefaults__, captured]
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    return f"{measure.__module__}.{measure.__qualname__} {digest}"


def _code_identity(code: CodeType) -> tuple[Any, ...]:
    def constant(one: Any) -> Any:
        # The repr of a code object contains an address; that of a set has another order in each process.
        if isinstance(one, CodeType):
            return _code_identity(one)
        return sorted(map(repr, one)) if isinstance(one, frozenset) else one

    return (code.co_code, code.co_names, code.co_varnames, code.co_freevars, [constant(one) for one in code.co_consts])
