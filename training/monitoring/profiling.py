"""Traces of whole steps, for Perfetto: from a step on, or whenever SIGUSR2 asks for one."""

import signal
import threading
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from training.config import TrainConfig
from training.options.choices import ProfileRanks
from training.ranks.world import World

_MEMORY_ENTRIES = 100_000
"""Allocations and frees that are remembered, each with its stack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    at: int = 0
    """The first step; 0: none but those that a signal asks for."""
    steps: int = 1
    on_all_ranks: bool = False
    memory: bool = False
    final: int | None = None
    """The last step of the training, at which a trace ends too; None: it is not known."""

    @classmethod
    def by(cls, config: TrainConfig) -> "Wanted":
        return cls(
            at=config.profile_step,
            steps=config.profile_steps,
            on_all_ranks=config.profile_ranks is ProfileRanks.ALL,
            memory=config.profile_memory,
            final=config.steps,
        )


class Profiler:
    """Of one rank. ``begin`` and ``end`` cost a comparison where nothing is traced."""

    def __init__(self, wanted: Wanted, *, world: World, directory: Path) -> None:
        self._world, self._wanted, self._directory = world, wanted, directory
        self._takes_part = world.is_first or wanted.on_all_ranks
        self._asked = False
        self._first = self._last = 0
        self._profile: profile | None = None

    def listen(self) -> None:
        """From now on SIGUSR2 asks for a trace of what comes next."""
        if threading.current_thread() is threading.main_thread():  # no other may set a handler
            signal.signal(signal.SIGUSR2, self._ask)

    def _ask(self, *_: object) -> None:
        self._asked = True

    def begin(self, step: int) -> None:
        if self._profile is not None or not (self._asked or step == self._wanted.at):
            return
        self._asked = False
        if not self._takes_part:
            return
        last = step + self._wanted.steps - 1
        self._first, self._last = step, min(last, self._wanted.final or last)
        activities = [ProfilerActivity.CPU]
        if self._on_gpu:
            activities.append(ProfilerActivity.CUDA)
            if self._wanted.memory:
                torch.cuda.memory._record_memory_history(max_entries=_MEMORY_ENTRIES)  # noqa: SLF001  no public way
        self._profile = profile(activities=activities, record_shapes=True, profile_memory=self._wanted.memory)
        self._profile.start()

    def end(self, step: int) -> dict[str, str] | None:
        """What was written where, after the last of the steps that are traced."""
        if self._profile is None or step < self._last:
            return None
        if self._world.accelerator.runs_ahead:
            # The trace is of this step's kernels, too.
            self._world.accelerator.synchronize(self._world.device)
        self._profile.stop()
        path = self._directory / f"trace-{self._name}.json"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._profile.export_chrome_trace(str(path))
            return {"path": str(path)} | self._memory()
        except (OSError, RuntimeError) as error:  # a full disk must not end the training
            return {"error": str(error)}
        finally:
            self._profile = None
            if self._on_gpu and self._wanted.memory:
                torch.cuda.memory._record_memory_history(enabled=None)  # noqa: SLF001  no longer

    def _memory(self) -> dict[str, str]:
        if not self._wanted.memory:
            return {}
        if not self._on_gpu:
            return {"memory": "allocations are in the trace; only CUDA's allocator makes snapshots"}
        path = self._directory / f"memory-{self._name}.pickle"
        torch.cuda.memory._dump_snapshot(str(path))  # type: ignore[no-untyped-call]  # noqa: SLF001  no public way
        return {"memory": str(path)}

    @property
    def _on_gpu(self) -> bool:
        return self._world.device.type == "cuda"

    @property
    def _name(self) -> str:
        steps = f"step-{self._first:08d}" + (f"-to-{self._last:08d}" if self._last > self._first else "")
        return steps if self._world.is_first else f"{steps}-rank-{self._world.rank}"
