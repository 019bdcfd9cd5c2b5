"""Prints what an attempt reports, from the first rank alone, and traces some of its steps."""

import json
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from training.config import TrainConfig
from training.config.choices import ProfileRanks
from training.config.environment import output_data_dir
from training.config.sections import MonitoringOptions, SampleOptions
from training.data.batches import Batch, BatchSource
from training.metrics import Event, LinesFile, StepMetrics, Validation, Yardstick, peak_of
from training.models.transformer import flops_per_token
from training.monitoring.goodput import Meter
from training.monitoring.nonfinite import Hunt
from training.monitoring.watchdog import Heartbeat
from training.preemptible.checkpoint import Checkpointer
from training.ranks.world import World, tell

_GIB = 2**30
_MEMORY_ENTRIES = 100_000
"""The most allocations and frees that are remembered, each with its stack."""


class Reporter:
    """Prints the metric lines, and writes them into the metrics file."""

    def __init__(
        self, config: TrainConfig, *, world: World, meter: Meter, checkpointer: Checkpointer | None
    ) -> None:
        self._config, self._world, self._meter = config, world, meter
        self._checkpointer = checkpointer
        self._yardstick = yardstick(config, world)
        self._file = (
            LinesFile(Path(config.metrics_file), option="metrics_file")
            if config.metrics_file and world.is_first
            else None
        )

    def report(self, step: int, *, loss: float, grad_norm: float, lr: float) -> None:
        """Report when the device has done the step: the steps since the last call share its time."""
        metrics = self._metrics(step, loss, grad_norm, lr)
        if self._file is not None:
            self._file.add(metrics.as_json())  # first: who kills the program for its line finds the record
        if self._world.is_first:
            print(metrics.line(), flush=True)

    def evaluated(self, validation: Validation, *, seconds: float) -> None:
        if self._world.is_first:
            print(validation.line(seconds=seconds), flush=True)

    def _metrics(self, step: int, loss: float, grad_norm: float, lr: float) -> StepMetrics:
        lap = self._meter.lap()
        speed = self._yardstick.speed(lap.step_seconds)
        return StepMetrics(
            step=step,
            loss=loss,
            lr=lr,
            grad_norm=grad_norm,
            tokens=step * self._config.tokens_per_step,
            tok_s=speed.tok_s,
            tok_s_gpu=speed.tok_s_gpu,
            img_s=self._config.batch_size / lap.step_seconds if self._config.has_images else None,
            tflops_gpu=speed.tflops_gpu,
            mfu=speed.mfu,
            step_ms=1000 * lap.step_seconds,
            data_ms=1000 * lap.data_seconds,
            mem_gib=self._world.accelerator.peak_memory(self._world.device) / _GIB,
            ckpt_step=self._checkpointer.newest_step if self._checkpointer else 0,
            ckpt_stall_ms=1000 * self._meter.checkpoint_stall,
            goodput=self._meter.goodput(),
            width=self._world.hosts,
            steps=self._config.steps,
        )


def yardstick(config: SampleOptions, world: World) -> Yardstick:
    return Yardstick(
        tokens_per_step=config.tokens_per_step,
        ranks=world.size,
        flops_per_token=flops_per_token(config.shape, config.lora),
        peak=peak_of(world.accelerator.name(world.device)),
    )


class Profiler:
    """Traces whole steps of this rank, for Perfetto: from ``profile_step`` on, or when SIGUSR2 asks for it.

    ``begin`` and ``end`` cost a comparison where nothing is traced.
    """

    def __init__(self, config: MonitoringOptions, *, world: World, directory: Path) -> None:
        self._config, self._world, self._directory = config, world, directory
        self._takes_part = world.is_first or config.profile_ranks is ProfileRanks.ALL
        self._asked = False
        self._first = self._last = 0
        self._profile: profile | None = None

    def listen(self) -> None:
        """Have SIGUSR2 ask for a trace of the steps that come next."""
        if threading.current_thread() is threading.main_thread():  # no other may set a handler
            signal.signal(signal.SIGUSR2, self._ask)

    def _ask(self, *_: object) -> None:
        self._asked = True

    def begin(self, step: int) -> None:
        if self._profile is not None or not (self._asked or step == self._config.profile_step):
            return
        self._asked = False
        if not self._takes_part:
            return
        self._first, self._last = step, min(step + self._config.profile_steps - 1, self._config.steps)
        activities = [ProfilerActivity.CPU]
        if self._on_gpu:
            activities.append(ProfilerActivity.CUDA)
            if self._config.profile_memory:
                torch.cuda.memory._record_memory_history(max_entries=_MEMORY_ENTRIES)  # noqa: SLF001  no public way
        self._profile = profile(
            activities=activities, record_shapes=True, profile_memory=self._config.profile_memory
        )
        self._profile.start()

    def end(self, step: int) -> dict[str, str] | None:
        """Write the trace after the last of its steps, and return the paths, or the error, for the log.

        Returns None after other steps.
        """
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
            if self._on_gpu and self._config.profile_memory:
                torch.cuda.memory._record_memory_history(enabled=None)  # noqa: SLF001  no longer

    def _memory(self) -> dict[str, str]:
        if not self._config.profile_memory:
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


class Trace:
    """Observes steps besides their metrics: traces of some, what this rank is doing, bad values."""

    def __init__(
        self,
        config: MonitoringOptions,
        *,
        world: World,
        env: Mapping[str, str],
        hunt: Hunt | None = None,
        numbers: Callable[[int], Sequence[int]] = lambda _step: (),
    ) -> None:
        """Begin to observe.

        Args:
            config: Options of the job.
            world: The ranks.
            env: The environment, which has the output directory.
            hunt: Looks for values that are not finite; None for no such search.
            numbers: Returns the numbers of the samples that a step has on this rank.
        """
        self._world, self._hunt = world, hunt
        self._profiler = Profiler(config, world=world, directory=output_data_dir(env))
        self._profiler.listen()
        self._heart = Heartbeat(env, hang_seconds=config.hang_seconds)
        self._numbers = numbers
        # The ranks of a tensor group have the same samples: the first of them writes.
        writes = config.samples_file and world.rank % world.ranks_per_share == 0
        self._samples = LinesFile(Path(config.samples_file), option="samples_file") if writes else None

    def begin(self, step: int) -> None:
        self._heart.begins(step)
        if self._hunt is not None:
            self._hunt.begin()
        self._profiler.begin(step)

    def before_update(self, step: int) -> None:
        """Check the step before its update. Raises FoundNotFiniteError."""
        if self._hunt is not None:
            self._hunt.check(step)

    def end(self, step: int) -> None:
        self._world.accelerator.end_step()
        written = self._profiler.end(step)
        self._heart.ends()
        if self._samples is not None:
            samples = {"step": step, "rank": self._world.rank, "samples": list(self._numbers(step))}
            self._samples.add(json.dumps(samples))
        if written is not None:
            tell(self._world, Event.PROFILE, step=step, **written)

    def of_waits(self, batches: BatchSource) -> BatchSource:
        """Wrap the batches so that the launcher knows while one is waited for; they stay the same."""
        return _Awaited(batches, self._heart)


class _Awaited:
    def __init__(self, batches: BatchSource, heart: Heartbeat) -> None:
        self._batches, self._heart = batches, heart

    def at(self, step: int) -> Batch:
        self._heart.waits_for_data()
        batch = self._batches.at(step)
        self._heart.has_data()
        return batch


_LOOK_SECONDS = 0.05


def last_step_allowed(file: Path) -> float:
    """Read the last step that may be trained; infinite where the file is not there or has no number."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return float("inf")


def wait_for(
    step: int, file: str, *, is_over: Callable[[], bool], pause: Callable[[float], None] = time.sleep
) -> float:
    """Return when the file allows this step, or ``is_over`` says that it is no longer wanted.

    Returns:
        The seconds of the wait.
    """
    began = time.perf_counter()
    while step > last_step_allowed(Path(file)) and not is_over():
        pause(_LOOK_SECONDS)
    return time.perf_counter() - began
