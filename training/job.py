"""Puts the parts of an attempt together: processes, model, optimizer, data, checkpoints."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch
from torch.optim import Optimizer

from training.config import TrainConfig
from training.config.sections import CheckpointOptions, SampleOptions
from training.data.batches import prefetched
from training.errors import ConfigError
from training.families import ImageData, TextData, evaluated_by, guard_of, guard_of_base, model_of, open_data
from training.interop import layout_of
from training.interop.exporting import export_adapters, export_weights
from training.interop.importing import load_weights
from training.loop import Trainer
from training.metrics import Event, Validation
from training.models import float8
from training.models.init import initialise
from training.models.lora import adapt, initialise_adapters, trained_part
from training.models.precision import noted, settled
from training.models.transformer import Backbone
from training.monitoring.evaluation import Evaluation
from training.monitoring.goodput import Meter
from training.monitoring.nonfinite import Hunt
from training.monitoring.report import Reporter, Trace
from training.optim import make_optimizer
from training.parallel.memory import refuse_unless_it_fits
from training.parallel.sharding import allocate, shard
from training.parallel.tensor_parallel import tokens_note
from training.preemptible.agreement import Agreement
from training.preemptible.checkpoint import Checkpointer, CheckpointStore, JobState, Retention, open_store
from training.preemptible.preempt import EXIT_PREEMPTED, StopRequest
from training.ranks.division import divided
from training.ranks.world import World, joined_world, tell, together


def run(config: TrainConfig, env: Mapping[str, str], stop: StopRequest) -> int:
    """Join the other ranks, train from the newest checkpoint on, and return the exit code."""
    waiting = stop.ends_at_once()
    with joined_world(env, join_seconds=config.join_seconds, waiting=waiting, on=config.device) as world:
        return run_in(world, config, env, stop)


def run_in(world: World, config: TrainConfig, env: Mapping[str, str], stop: StopRequest) -> int:
    """Train on the ranks that have joined."""
    division = divided(config, world, env)
    config, world = replace(config, gradient_accumulation_steps=division.parts), division.world
    agreement = Agreement(stop)
    if _was_stopped(agreement, world):
        return EXIT_PREEMPTED
    store = _opened_store(config, env)
    config, choice = settled(config, world, store)
    data, data_seconds = _opened_data(config, env)
    model = empty_model(config, world)
    _tell_what_runs(config, world, model, (*choice.lines(), *division.notes))
    optimizer = make_optimizer(trained_part(model), config)
    guard = guard_of(config, data.identity) | guard_of_base(config, env, model)
    checkpointer = _checkpointer(config, store, model, optimizer, guard)
    if resumed := checkpointer.load_newest():
        _tell_where_it_resumes(world, resumed.step, {**resumed.seconds, "data": data_seconds})
    else:
        _begin_weights(model, config, env)
    meter = Meter(resumed.carried if resumed else None, width=world.hosts)
    steps = range(resumed.step + 1 if resumed else 1, config.steps + 1)
    source = data.batches(world)
    hunt = Hunt.by(config, world=world, model=model, numbers=source.numbers)
    trace = Trace(config, world=world, env=env, hunt=hunt, numbers=source.numbers)
    with prefetched(source, depth=config.prefetch_batches, steps=steps, pin=world.device) as batches:
        trainer = Trainer(
            config,
            world=world,
            model=model,
            optimizer=optimizer,
            batches=trace.of_waits(batches),
            agreement=agreement,
            meter=meter,
            checkpointer=checkpointer,
            reporter=Reporter(config, world=world, meter=meter, checkpointer=checkpointer),
            trace=trace,
            is_masked=data.is_masked,
            evaluation=_evaluation(config, world, model, data),
            validation=Validation.carried_by(resumed.carried) if resumed else None,
        )
        return _train(trainer, checkpointer, steps)


def _opened_store(config: CheckpointOptions, env: Mapping[str, str]) -> CheckpointStore:
    """Make the directories of results, on all ranks or on none, and open the place of checkpoints."""
    together(partial(_make_directories, config))
    return open_store(config.checkpoint_dir, env, cache_dir=config.cache_dir)


def _opened_data(config: SampleOptions, env: Mapping[str, str]) -> tuple[TextData | ImageData, float]:
    """Open the training data, on all ranks or on none; return it with the seconds it took."""
    began = time.perf_counter()
    data = together(partial(open_data, config, env))
    return data, time.perf_counter() - began


def _was_stopped(agreement: Agreement, world: World) -> bool:
    """Tell whether a stop was asked for while the program was loaded."""
    if (is_stopped := agreement.now().stop) and world.is_first:
        print("stopped on SIGTERM before the first step", flush=True)
    return is_stopped


def _tell_where_it_resumes(world: World, step: int, seconds: Mapping[str, float]) -> None:
    """Report the resume; ``seconds`` are those of the phases of loading."""
    tell(world, Event.RESUME, step=step, **{f"{name}_s": round(seconds[name], 3) for name in seconds})


def _begin_weights(model: Backbone, config: SampleOptions, env: Mapping[str, str]) -> None:
    """Give a job that has no checkpoint yet its first weights."""
    if config.lora:
        initialise_adapters(model, seed=config.seed, layers=config.shape.layers)
    elif config.init_from:
        _start_from_weights(config, env, model)
    else:
        initialise(model, seed=config.seed, layers=config.shape.layers)


def _train(trainer: Trainer, checkpointer: Checkpointer, steps: range) -> int:
    try:
        if trainer.run(steps).stopped:
            return EXIT_PREEMPTED
        checkpointer.wait()
        _complete(trainer)
    except Exception as error:
        checkpointer.end(JobState.FAILED, step=trainer.reached, reason=str(error))
        raise
    checkpointer.end(JobState.COMPLETED, step=trainer.reached)
    world, loss = trainer.world, trainer.reported_loss
    tell(world, Event.DONE, step=trainer.reached, loss=loss, width=world.hosts)
    if world.is_first:
        print(f"completed step={trainer.reached}", flush=True)
    return 0


def empty_model(config: TrainConfig, world: World) -> Backbone:
    """Make the model, sharded, with any numbers for weights: they are loaded or initialised later.

    The whole model is never on one rank.
    """
    with torch.device("meta"):
        model = model_of(config.shape)
    if config.lora:
        adapt(model, config)
    if config.precision.is_float8:
        float8.convert(model, config, world)
    shard(model, world=world, config=config)
    refuse_unless_it_fits(model, config, world)
    allocate(model, world=world, config=config)
    return model


def make_model(config: TrainConfig, world: World) -> Backbone:
    """Make the model with its first weights, for callers that resume from nothing."""
    model = empty_model(config, world)
    initialise(model, seed=config.seed, layers=config.shape.layers)
    return model


def _checkpointer(
    config: TrainConfig,
    store: CheckpointStore,
    model: Backbone,
    optimizer: Optimizer,
    guard: Mapping[str, str],
) -> Checkpointer:
    return Checkpointer(
        store,
        model=trained_part(model),
        optimizer=optimizer,
        guard=guard,
        notes=noted(config.precision),
        keep=Retention(newest=config.checkpoint_keep, every=config.checkpoint_keep_every),
        asynchronous=config.checkpoint_async,
        total_steps=config.steps,
    )


def _evaluation(
    config: TrainConfig, world: World, model: Backbone, data: TextData | ImageData
) -> Evaluation | None:
    batches = data.validation(world)
    if batches is None:
        return None
    return Evaluation(
        model,
        world=world,
        batches=batches,
        objective=evaluated_by(config),
        depth=config.prefetch_batches,
    )


def _start_from_weights(config: SampleOptions, env: Mapping[str, str], model: Backbone) -> None:
    """Load the weights to start from; a new head gets first values."""
    if config.new_head:
        layout = layout_of(model.shape)
        heads = {name for name, _ in model.named_parameters() if layout.is_head(name)}
        initialise(model, seed=config.seed, layers=config.shape.layers, only=heads)
    load_weights(model, config.init_from, env, new_head=config.new_head)


def _complete(trainer: Trainer) -> None:
    """Leave the result in the model directory, which SageMaker packs as model.tar.gz."""
    config = trainer.config
    if config.export and (config.lora is None or config.lora_merge):
        export_weights(trainer.model, config.model_dir, config.shape)
    if config.export and config.lora:
        adapters = config.model_dir / "adapter"
        export_adapters(trainer.model, adapters, config.lora, base=config.init_from)
    if trainer.world.is_first:
        results = {
            "preset": config.model_name,
            "precision": config.precision,
            "seed": config.seed,
            "steps": config.steps,
            "loss": trainer.reported_loss,
        }
        results["widths"] = [asdict(width) for width in trainer.meter.by_width()]
        if trainer.validation is not None:
            results |= {"val_loss": trainer.validation.loss, "val_perplexity": trainer.validation.perplexity}
        if trainer.validation is not None and trainer.validation.accuracy is not None:
            results |= {"val_accuracy": trainer.validation.accuracy}
        (config.model_dir / "metrics.json").write_text(json.dumps(results, indent=1) + "\n")


def _make_directories(config: CheckpointOptions) -> None:
    """Make the directories of results, before anything is trained that would have nowhere to go."""
    wanted = {"model_dir": config.model_dir} | (
        {"cache_dir": Path(config.cache_dir)} if config.cache_dir else {}
    )
    for option, directory in wanted.items():
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError([f"{option} {directory} cannot be made: {error.strerror}"]) from error


def _tell_what_runs(config: TrainConfig, world: World, model: Backbone, notes: Sequence[str]) -> None:
    """Print what is trained, and how; ``notes`` are lines about choices that the program made itself."""
    if not world.is_first:
        return
    options = {**config.options, "shape": asdict(config.shape)}
    print("config " + json.dumps(options, default=str), flush=True)
    for line in notes:
        print(line, flush=True)
    for line in config.translations:
        print(f"fsdp1: {line}", flush=True)
    if note := tokens_note(config.shape, world.ranks_per_share):
        print(f"tensor parallel: {note}", flush=True)
    tell(
        world,
        Event.WORLD,
        width=world.hosts,
        ranks=world.size,
        ranks_per_host=world.ranks_per_host,
        device=world.device.type,
        precision=config.precision,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )
