"""Reads batches ahead of use in one thread, so that a step does not wait for storage."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Protocol

import torch

from training.data.batches import Batch

_JOIN_SECONDS = 2.0
"""A read that hangs must not keep the attempt from ending: the thread is a daemon."""


class BatchSource(Protocol):
    def at(self, step: int) -> Batch: ...


@contextmanager
def prefetched(
    batches: BatchSource, *, depth: int, steps: range, pin: torch.device | None
) -> Iterator[BatchSource]:
    """The same batches, the next ``depth`` of ``steps`` read ahead; they are asked for in that order.

    What goes wrong in the thread is raised by the step that needs the batch. With depth 0 there is no
    thread. ``pin``: the GPU that the batches go to; they are kept where it can fetch them by itself.
    """
    if depth == 0:
        yield batches
        return
    ahead = _Ahead(batches, depth=depth, steps=steps, pin=pin)
    try:
        yield ahead
    finally:
        ahead.close()


class _Ahead:
    def __init__(self, batches: BatchSource, *, depth: int, steps: range, pin: torch.device | None) -> None:
        self._batches, self._steps, self._pin = batches, steps, pin
        self._room = threading.Semaphore(depth)
        self._ready: SimpleQueue[tuple[int, Batch | BaseException]] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._read, name="prefetch", daemon=True)
        self._thread.start()

    def at(self, step: int) -> Batch:
        number, batch = self._ready.get()
        if isinstance(batch, BaseException):
            self._ready.put((number, batch))  # whoever asks again gets the same answer
            raise batch
        assert number == step, f"step {step} was asked for, step {number} comes next"
        self._room.release()
        return batch

    def close(self) -> None:
        self._closed = True
        self._room.release()
        self._thread.join(_JOIN_SECONDS)

    def _read(self) -> None:
        step = self._steps.start
        try:
            if self._pin is not None:
                torch.cuda.set_device(self._pin)  # per thread; else each rank opens a context on GPU 0
            for step in self._steps:
                self._room.acquire()
                if self._closed:
                    return
                self._ready.put((step, self._batch(step)))
        except BaseException as error:  # noqa: BLE001  raised where the batch is asked for
            self._ready.put((step, error))

    def _batch(self, step: int) -> Batch:
        batch = self._batches.at(step)
        return batch if self._pin is None else tuple(one.pin_memory() for one in batch)
