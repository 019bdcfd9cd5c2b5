"""Threads wait for events of the test, never for a time."""

import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor

import training
from training.data.batches import prefetched


class StorageError(Exception):
    pass


@dataclass
class Recorded:
    """Batches that say which steps were read, may fail at one and may hang at another."""

    fails_at: int | None = None
    hangs_at: int | None = None
    read: list[int] = field(default_factory=list)
    progress: threading.Condition = field(default_factory=threading.Condition)
    let_go: threading.Event = field(default_factory=threading.Event)

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        with self.progress:
            self.read.append(step)
            self.progress.notify_all()
        if step == self.fails_at:
            raise StorageError(step)
        if step == self.hangs_at:
            self.let_go.wait(30)
        return torch.tensor([step]), torch.tensor([-step])

    def wait_until_read(self, step: int) -> None:
        with self.progress:
            assert self.progress.wait_for(lambda: step in self.read, timeout=30)


def _threads() -> int:
    return sum(thread.name == "prefetch" for thread in threading.enumerate())


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_the_batches_are_those_that_a_step_would_read_itself(depth: int) -> None:
    with prefetched(Recorded(), depth=depth, steps=range(3, 9), pin=None) as batches:
        assert [[part.item() for part in batches.at(step)] for step in range(3, 9)] == [
            [3, -3],
            [4, -4],
            [5, -5],
            [6, -6],
            [7, -7],
            [8, -8],
        ]


def test_no_more_batches_wait_than_the_depth() -> None:
    source = Recorded()
    with prefetched(source, depth=2, steps=range(1, 100), pin=None) as batches:
        source.wait_until_read(2)
        assert source.read == [1, 2]
        batches.at(1)
        source.wait_until_read(3)
        assert source.read == [1, 2, 3]


def test_what_goes_wrong_is_raised_by_the_step_that_needs_the_batch() -> None:
    source = Recorded(fails_at=3)
    with prefetched(source, depth=5, steps=range(1, 10), pin=None) as batches:
        source.wait_until_read(3)
        assert batches.at(1)[0].item() == 1
        assert batches.at(2)[0].item() == 2
        for _ in range(2):  # and by whoever asks again
            with pytest.raises(StorageError, match="3"):
                batches.at(3)
    assert source.read == [1, 2, 3]


def test_leaving_ends_the_thread_though_batches_wait() -> None:
    source = Recorded()
    with prefetched(source, depth=2, steps=range(1, 100), pin=None):
        source.wait_until_read(2)
        assert _threads() == 1
    assert _threads() == 0


def test_leaving_does_not_wait_for_a_read_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.data.batches._JOIN_SECONDS", 0.01)
    source = Recorded(hangs_at=1)
    with prefetched(source, depth=2, steps=range(1, 100), pin=None):
        source.wait_until_read(1)
    source.let_go.set()
    assert source.read == [1]


def test_the_process_ends_though_reads_hang() -> None:
    code = (
        "import threading\n"
        "from training.data.fetchers import Fetchers\n"
        "from training.data.batches import prefetched\n"
        "class Hanging:\n"
        "    def at(self, step):\n"
        "        threading.Event().wait()\n"
        "fetchers = Fetchers(Hanging().at, threads=2)\n"
        "fetchers.order(((0, 0),))\n"
        "with prefetched(Hanging(), depth=1, steps=range(9), pin=None):\n"
        "    pass\n"
    )
    root = Path(training.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, timeout=60, check=False)
    assert done.returncode == 0


def test_depth_0_reads_when_asked_and_has_no_thread() -> None:
    source = Recorded()
    with prefetched(source, depth=0, steps=range(1, 9), pin=None) as batches:
        assert _threads() == 0
        assert source.read == []
        batches.at(5)
    assert source.read == [5]


def test_another_step_than_the_next_is_a_mistake_of_the_program() -> None:
    with (
        prefetched(Recorded(), depth=1, steps=range(1, 9), pin=None) as batches,
        pytest.raises(AssertionError, match="step 5 was asked for, step 1 comes next"),
    ):
        batches.at(5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="pinned memory needs a GPU")
def test_batches_for_a_gpu_are_pinned() -> None:
    device = torch.device("cuda", 0)
    with prefetched(Recorded(), depth=1, steps=range(1, 3), pin=device) as batches:
        assert all(part.is_pinned() for part in batches.at(1))
