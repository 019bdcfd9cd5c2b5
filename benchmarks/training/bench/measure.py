"""One case of a suite: `python -m benchmarks.training.bench.measure TASK ANSWER`; it may fail in any way.

What goes wrong is known by its type where torch has one; the answer is written in one piece, or not at all.
"""

import json
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._dynamo.exc import TorchDynamoException
from torch._inductor.exc import InductorError

from benchmarks.training.bench import mlp
from benchmarks.training.bench.cases import Kind, State
from benchmarks.training.bench.modes import (
    BenchOptions,
    device_name,
    forget,
    measured,
    read_options,
    trainer_of,
)
from tools.training import prepare
from training.config import TrainConfig
from training.data.batches import Batches, prefetched
from training.data.corpus import open_corpus
from training.errors import DoesNotFitError, MissingPackageError, UnsupportedDeviceError
from training.job import make_model
from training.metrics import peak_of
from training.models.precision import settled
from training.models.transformer import flops_per_token
from training.monitoring.report import Trace
from training.optim import make_optimizer
from training.preemptible.checkpoint import Checkpointer, open_store
from training.ranks.devices import this_processor
from training.ranks.world import World, joined_world

_GIB, _TERA = 2**30, 1e12
_HOST_ALLOCATION = "DefaultCPUAllocator: can't allocate memory"
"""All that tells a refused allocation on a CPU from other RuntimeErrors: torch has no type for it."""
_TEXT_BYTES = 8 * 2**20
_BATCHES_READ = 100
_TRACED_STEP = 3
_SHOWN_KERNELS = 8
_SIZE = ("layers", "width")
"""Options of the row of matrices, which no model of the training program has."""


def main(arguments: list[str]) -> int:
    task, answer = json.loads(arguments[0]), Path(arguments[1])
    outcome = answered(partial(_measured, task, answer.parent))
    draft = answer.with_suffix(".draft")
    draft.write_text(json.dumps(outcome))
    draft.rename(answer)
    print(outcome["reason"], flush=True)
    return 0


def answered(measure: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the result, or which kind of failure it was."""
    try:
        return {"state": State.OK, "reason": "", "result": measure()}
    except (UnsupportedDeviceError, MissingPackageError) as error:
        state, reason = State.SKIPPED, str(error)
    except (torch.OutOfMemoryError, MemoryError, DoesNotFitError) as error:
        state, reason = State.OUT_OF_MEMORY, _first_line(error)
    except (TorchDynamoException, InductorError) as error:
        state, reason = State.COMPILE_ERROR, _first_line(error)
    except RuntimeError as error:
        is_memory = _HOST_ALLOCATION in str(error)
        state, reason = (State.OUT_OF_MEMORY if is_memory else State.FAILED), _first_line(error)
    except Exception as error:  # noqa: BLE001  the bulkhead: the suite goes on with its other cases
        state, reason = State.FAILED, _first_line(error)
    return {"state": state, "reason": reason, "result": {}}


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0]}"


def _measured(task: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """``place``: of its files; it goes with the case, however that ends."""
    config, options, size = _read(task)
    with joined_world(os.environ, join_seconds=60.0) as world:
        config, _ = settled(config, world)
        match Kind(task["kind"]):
            case Kind.DEVICE:
                return device(world)
            case Kind.STEPS:
                return steps(config, options, world)
            case Kind.BATCH:
                return fitting(config, world)
            case Kind.CHECKPOINT:
                return checkpoint(config, world, place)
            case Kind.DATA:
                return data(config, place)
            case Kind.TRACE:
                return trace(config, world, place)
            case Kind.MLP:
                return mlp.measured(config, options, world, **size)


def _read(task: Mapping[str, Any]) -> tuple[TrainConfig, BenchOptions, dict[str, int]]:
    """Limit the memory as the task says, and return its options and the size of its row of matrices."""
    if task["memory_gib"]:
        _limit_memory(task["memory_gib"])
    given = dict(task["options"])
    size = {name: int(given.pop(name)) for name in _SIZE if name in given}
    return *read_options([f"--{name}={text}" for name, text in given.items()]), size


def _limit_memory(gib: float) -> None:
    """Limit the memory of a CPU's case, which else would end only with the machine's."""
    words = Path("/proc/self/statm").read_text().split()
    used = int(words[5]) * resource.getpagesize()  # data and stack
    resource.setrlimit(resource.RLIMIT_DATA, (used + int(gib * _GIB),) * 2)


def steps(config: TrainConfig, options: BenchOptions, world: World) -> dict[str, Any]:
    here = this_processor()
    return {
        **measured(config, options, world, options.chosen[0]),
        "batch": config.batch_size,
        "flops_per_token": flops_per_token(config.shape),
        "threads": torch.get_num_threads(),
        "processor": here.name,
        "bf16_instructions": here.bf16,
    }


def device(world: World) -> dict[str, Any]:
    """Name, the stated peak, and what matrices and copies reach here."""
    on_gpu = world.device.type == "cuda"
    name = device_name(world.device)
    peak = peak_of(name) if on_gpu else None
    size = 8192 if on_gpu else 1024
    left = torch.randn(size, size, device=world.device, dtype=torch.bfloat16)
    seconds = _seconds_of(lambda: left @ left, world)
    copied = torch.empty(2**28 if on_gpu else 2**24, device=world.device, dtype=torch.bfloat16)
    copy_seconds = _seconds_of(copied.clone, world)
    return {
        "name": name,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "peak": None if peak is None else asdict(peak),
        "matrix_tflops": 2 * size**3 / seconds / _TERA,
        "copy_gb_s": 2 * copied.numel() * copied.element_size() / copy_seconds / 1e9,
        "memory_gib": torch.cuda.get_device_properties(world.device).total_memory / _GIB if on_gpu else None,
    }


def _seconds_of(work: Callable[[], object], world: World, *, times: int = 10) -> float:
    """Return the seconds of one repetition of many; the first ones only warm up."""
    for repetition in range(times + 3):
        if repetition == 3:  # noqa: PLR2004  warm by now
            _wait(world)
            began = time.perf_counter()
        work()
    _wait(world)
    return (time.perf_counter() - began) / times


def _wait(world: World) -> None:
    if world.device.type == "cuda":
        torch.cuda.synchronize(world.device)


def fitting(config: TrainConfig, world: World) -> dict[str, Any]:
    """Train two steps: the second has the optimizer's moments beside all else."""
    trainer = trainer_of(config, world)
    trainer.run(range(1, 3))
    trainer.loss()
    return {"memory_gib": world.accelerator.peak_memory(world.device) / _GIB}


def checkpoint(config: TrainConfig, world: World, place: Path) -> dict[str, Any]:
    """Measure how long a save delays the training, how long it takes, and how long a resume takes."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        trainer = trainer_of(config, world)
        saver = Checkpointer(open_store(folder, {}), model=trainer.model, optimizer=trainer.optimizer)
        saver.load_newest()
        stalls, whole = [], []
        for step in (1, 2, 3):  # the first one allocates what the others reuse
            trainer.run(range(step, step + 1))
            began = time.perf_counter()
            stalls.append(saver.save(step))
            saver.wait()
            whole.append(time.perf_counter() - began)
        stored = sum(file.stat().st_size for file in Path(folder).rglob("step-00000003/*") if file.is_file())
        del trainer, saver
        forget(world.device)
        return {
            "bytes": stored,
            "stall_seconds": stalls,
            "save_seconds": whole,
            **_resumed(config, world, folder),
        }


def _resumed(config: TrainConfig, world: World, folder: str) -> dict[str, Any]:
    began = time.perf_counter()
    model = make_model(config, world)
    made = time.perf_counter()
    loader = Checkpointer(open_store(folder, {}), model=model, optimizer=make_optimizer(model, config))
    resumed = loader.load_newest()
    _wait(world)
    ended = time.perf_counter()
    assert resumed is not None
    return {
        "model_seconds": made - began,
        "load_seconds": ended - made,
        "load_phases": dict(resumed.seconds),
    }


def data(config: TrainConfig, place: Path) -> dict[str, Any]:
    """Measure token shards on this machine's disk, read as a job reads them."""
    with tempfile.TemporaryDirectory(dir=place) as name:
        text, shards = Path(name) / "text", Path(name) / "shards"
        text.mkdir()
        (text / "all.txt").write_bytes(bytes(range(32, 96)) * (_TEXT_BYTES // 64))
        began = time.perf_counter()
        assert prepare.main(["--input", str(text), "--output", str(shards)]) == 0
        prepared = time.perf_counter() - began
        config = replace(config, data=str(shards))
        batches = Batches(
            corpus=open_corpus(config, env={}),
            sequence_length=config.shape.sequence_length,
            size=config.batch_size,
            rank=0,
            ranks=1,
            seed=config.seed,
        )
        steps = range(1, _BATCHES_READ + 1)
        with prefetched(batches, depth=config.prefetch_batches, steps=steps, pin=None) as ahead:
            began = time.perf_counter()
            for step in steps:
                ahead.at(step)
            seconds = time.perf_counter() - began
    tokens = _BATCHES_READ * config.tokens_per_step
    return {
        "prepare_mb_s": _TEXT_BYTES / prepared / 1e6,
        "tok_s": tokens / seconds,
        "batch_ms": 1000 * seconds / _BATCHES_READ,
    }


def trace(config: TrainConfig, world: World, place: Path) -> dict[str, Any]:
    """Trace a step, and tell where its time went."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        trainer = trainer_of(config, world)
        traced = replace(config, profile_step=_TRACED_STEP)
        trainer.trace = Trace(traced, world=world, env={"SM_OUTPUT_DATA_DIR": folder})
        trainer.run(range(1, _TRACED_STEP + 1))
        (path,) = Path(folder).glob("trace-step-*.json")
        events = json.loads(path.read_bytes())["traceEvents"]
        category = "kernel" if world.device.type == "cuda" else "cpu_op"
        spent: Counter[str] = Counter()
        for event in events:
            if event.get("cat") == category:
                spent[event["name"]] += event["dur"]
        kept = Path("build/bench-trace.json")
        kept.parent.mkdir(exist_ok=True)
        path.replace(kept)
    longest = [{"name": name, "ms": duration / 1000} for name, duration in spent.most_common(_SHOWN_KERNELS)]
    return {"path": str(kept), "events": len(events), "longest": longest}


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # The answer is written: what gloo's or a compiler's threads make of the end does not matter.
    os._exit(code)
