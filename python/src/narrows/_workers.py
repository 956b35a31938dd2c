"""Workers of a sweep: its runs are handed out to processes of this machine or to any executor, and those of a worker that
died are repeated.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from typing import Any

Task = Callable[[], list[dict[str, Any]]]
"""Some runs of one scenario, as sent to a worker."""
Chunk = tuple[int, list[int]]
MakeTask = Callable[[int, Sequence[int]], Task]
TakeResults = Callable[[int, Sequence[int], Sequence[dict[str, Any]]], None]


def worker_count(executor: Any) -> int:
    if executor is None:
        return len(os.sched_getaffinity(0))
    return int(getattr(executor, "_max_workers", 0) or os.cpu_count() or 1)


def pool(workers: int) -> ProcessPoolExecutor:
    """Creates a process pool that is safe if this process has threads."""
    # Forking a process with threads may hang; a fork server needs an importable main script.
    method = "fork" if threading.active_count() == 1 and "fork" in multiprocessing.get_all_start_methods() else "forkserver"
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context(method))


def _call(task: Task) -> list[dict[str, Any]]:
    return task()


def _died(error: BaseException, part: Sequence[int]) -> list[dict[str, Any]]:
    return [{"error": f"its worker died: {type(error).__name__}: {error}"} for _ in part]


def spread_here(chunks: Sequence[Chunk], task: MakeTask, take: TakeResults, workers: int, retries: int) -> None:
    """Distributes chunks to processes of this machine. If a process dies, the run that caused it is unknown: all chunks that
    were out at that time are repeated run by run in a separate process, and the others continue as before.
    """
    waiting = deque(chunks)
    while waiting:
        out: dict[Future[Any], Chunk] = {}
        suspects: list[Chunk] = []
        engine = pool(workers)
        chunk = waiting[0]
        try:
            while (waiting or out) and not suspects:
                while waiting and len(out) < 2 * workers:
                    chunk = waiting.popleft()
                    out[engine.submit(_call, task(*chunk))] = chunk
                for future in wait(out, return_when=FIRST_COMPLETED).done:
                    chunk = out.pop(future)
                    try:
                        take(*chunk, future.result())
                    except BrokenExecutor:
                        suspects.append(chunk)
        except BrokenExecutor:
            # The pool broke while another chunk was submitted: the last one taken from the waiting chunks.
            waiting.appendleft(chunk)
        finally:
            engine.shutdown(wait=False, cancel_futures=True)
        if suspects or out:
            _spread_alone([*suspects, *out.values()], task, take, retries)


def _spread_alone(chunks: Iterable[Chunk], task: MakeTask, take: TakeResults, retries: int) -> None:
    engine = pool(1)
    try:
        for at, part in chunks:
            for seed in part:
                results: list[dict[str, Any]] = []
                for _ in range(retries + 1):
                    try:
                        results = engine.submit(_call, task(at, [seed])).result()
                        break
                    except BrokenExecutor as error:
                        results = _died(error, [seed])
                        engine.shutdown()
                        engine = pool(1)
                take(at, [seed], results)
    finally:
        engine.shutdown(wait=False, cancel_futures=True)


def spread(chunks: Sequence[Chunk], task: MakeTask, take: TakeResults, executor: Any, retries: int) -> None:
    """Distributes chunks to an executor of the caller. A chunk that fails is repeated run by run; if the executor itself is
    broken, its runs have failed.
    """
    waiting = [(at, part, 0) for at, part in chunks]
    while waiting:
        again: list[tuple[int, list[int], int]] = []
        futures: dict[Any, tuple[int, list[int], int]] = {}
        try:
            for at, part, tries in waiting:
                try:
                    futures[executor.submit(_call, task(at, part))] = (at, part, tries)
                except BrokenExecutor as error:
                    take(at, part, _died(error, part))
            for future in _completed(futures):
                at, part, tries = futures[future]
                try:
                    take(at, part, future.result())
                except Exception as error:  # executors have their own errors for dead workers
                    if tries < retries and not isinstance(error, BrokenExecutor):
                        again.extend((at, [seed], tries + 1) for seed in part)
                    else:
                        take(at, part, _died(error, part))
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        waiting = again


def _completed(futures: Mapping[Any, Any]) -> Iterator[Any]:
    """Yields futures as they complete: those of `concurrent.futures` or with the same methods."""
    left = set(futures)
    while left:
        if all(isinstance(future, Future) for future in left):
            done, left = wait(left, return_when=FIRST_COMPLETED)
        else:
            done = {future for future in left if future.done()}
            left -= done
            if not done:
                time.sleep(0.05)
        yield from done


class Progress:
    """Shows the progress of a sweep and the time left on a terminal."""

    def __init__(self, total: int, before: int, shown: bool) -> None:
        self._bar: Any = None
        if not shown or before == total:
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            if sys.stderr.isatty():
                self._bar = _Line(total, before)
            return
        if sys.stderr.isatty() or "ipykernel" in sys.modules:
            self._bar = tqdm(total=total, initial=before, unit="run")

    def add(self, runs: int) -> None:
        if self._bar is not None:
            self._bar.update(runs)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Line:
    def __init__(self, total: int, before: int) -> None:
        self._total, self._before, self._done, self._began = total, before, before, time.monotonic()

    def update(self, runs: int) -> None:
        self._done += runs
        spent = time.monotonic() - self._began
        left = spent / max(1, self._done - self._before) * (self._total - self._done)
        print(f"\r{self._done} of {self._total} runs, {left:.0f} s left ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(file=sys.stderr)
