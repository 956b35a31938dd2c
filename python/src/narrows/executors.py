"""Executors of `concurrent.futures` for task engines that do not provide one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from importlib import import_module
from typing import Any


class RayExecutor(Executor):
    """Runs tasks on a Ray cluster, and starts Ray if necessary: `narrows.sweep(…, executor=RayExecutor())`."""

    def __init__(self, **options: Any) -> None:
        """`options` are those of `ray.init`."""
        ray: Any = import_module("ray")
        self._ray = ray
        if not ray.is_initialized():
            ray.init(**options)
        self._max_workers = int(ray.cluster_resources().get("CPU", 1))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs a function on a node of the cluster."""
        future: Future[Any] = self._ray.remote(fn).remote(*args, **kwargs).future()
        return future
