"""Puts the parts of an attempt together and runs it."""

from collections.abc import Mapping
from pathlib import Path

import torch

from training.checkpoint import Checkpointer, LocalStore
from training.config import TrainConfig
from training.data import Batches, SyntheticLanguage
from training.errors import ConfigError
from training.loop import LoopParts, LoopPlan, run_steps
from training.meter import Meter
from training.models.init import initialise
from training.models.llama import Transformer
from training.optim import make_optimizer
from training.parallel import shard, weights_device
from training.preempt import EXIT_PREEMPTED, StopRequest
from training.preempt.agreement import Agreement
from training.profiling import traced
from training.report import Reporter
from training.results import write_metrics
from training.trainer import Trainer
from training.weights import export_weights
from training.world import World, joined_world


def run(config: TrainConfig, env: Mapping[str, str], stop: StopRequest) -> int:
    """Train from the newest checkpoint on, and return the exit code."""
    with joined_world(env, join_seconds=config.join_seconds) as world:
        _prepare(config, world)
        agreement = Agreement(stop)
        if agreement.now().stop:  # asked while the program was loaded
            return _stopped(world, "before the first step")
        model = make_model(config, world)
        _tell(config, world, model)
        trainer, checkpointer = _make_parts(config, world, model, agreement)
        resumed = checkpointer.load_newest()
        done = resumed.step if resumed else 0
        meter = Meter(None, newest_step=done)
        reporter = Reporter(config, world=world, trainer=trainer, meter=meter)
        parts = LoopParts(
            agree=agreement.now,
            train_step=traced(reporter.counted(trainer.step), at=config.profile_step, world=world, env=env),
            report=reporter.report,
            save=checkpointer.save,
        )
        end = run_steps(_loop_plan(config), parts, done=done)
        if end.stopped:
            if end.step > done:
                checkpointer.save(end.step)
            return _stopped(world, f"after step={end.step}; its checkpoint is saved")
        _finish(config, world=world, model=model, loss=reporter.loss)
        return 0


def _stopped(world: World, when: str) -> int:
    if world.is_first:
        print(f"stopped on SIGTERM {when}", flush=True)
    return EXIT_PREEMPTED


def make_model(config: TrainConfig, world: World) -> Transformer:
    """Sharded and initialised; the whole model is never on one rank."""
    with torch.device("meta"):
        model = Transformer(config.shape)
    shard(model, world=world, config=config)
    model.to_empty(device=weights_device(config, world))
    initialise(model, seed=config.seed, layers=config.shape.layers)
    return model


def _prepare(config: TrainConfig, world: World) -> None:
    """Refuse what cannot work before any time is spent on it."""
    parts = world.size * config.gradient_accumulation_steps
    if config.batch_size % parts:
        each = f"{world.size} ranks x {config.gradient_accumulation_steps} gradient_accumulation_steps"
        near = ", ".join(str(one) for one in _multiples_around(config.batch_size, parts))
        raise ConfigError([f"batch_size {config.batch_size} does not divide by {each}; take {near}"])
    for directory in (Path(config.checkpoint_dir), config.model_dir):
        directory.mkdir(parents=True, exist_ok=True)


def _multiples_around(number: int, of: int) -> list[int]:
    below = number // of * of
    return [one for one in (below, below + of) if one]


def _make_parts(
    config: TrainConfig, world: World, model: Transformer, agreement: Agreement
) -> tuple[Trainer, Checkpointer]:
    optimizer = make_optimizer(model, config)
    language = SyntheticLanguage(vocabulary=config.shape.vocabulary, seed=config.seed)
    batches = Batches(
        corpus=language,
        sequence_length=config.shape.sequence_length,
        size=config.batch_size,
        rank=world.rank,
        ranks=world.size,
        seed=config.seed,
    )
    checkpointer = Checkpointer(
        LocalStore(Path(config.checkpoint_dir)),
        model=model,
        optimizer=optimizer,
        # The optimizer's own options come back with its state, so a new value would be ignored.
        guard={name: str(getattr(config, name)) for name in ("preset", "seed", "weight_decay")},
        asynchronous=False,
        total_steps=config.steps,
    )
    trainer = Trainer(
        config, world=world, model=model, optimizer=optimizer, batches=batches, agreement=agreement
    )
    return trainer, checkpointer


def _loop_plan(config: TrainConfig) -> LoopPlan:
    return LoopPlan(
        steps=config.steps,
        log_every=config.log_every,
        checkpoint_every=config.checkpoint_every or 10,
        min_step_seconds=config.min_step_seconds,
    )


def _tell(config: TrainConfig, world: World, model: Transformer) -> None:
    if world.is_first:
        parameters = sum(one.numel() for one in model.parameters())
        print(
            f"training preset={config.preset} parameters={parameters} precision={config.precision} "
            f"seed={config.seed} steps={config.steps} batch_size={config.batch_size} "
            f"ranks={world.size} device={world.device.type}",
            flush=True,
        )


def _finish(config: TrainConfig, *, world: World, model: Transformer, loss: float | None) -> None:
    if config.export:
        export_weights(model, config.model_dir, config.shape)
    if world.is_first:
        metrics = {"preset": config.preset, "seed": config.seed, "steps": config.steps, "loss": loss}
        write_metrics(config.model_dir, metrics)
        print(f"completed step={config.steps}", flush=True)
