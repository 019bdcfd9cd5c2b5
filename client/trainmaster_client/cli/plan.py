"""``trainmaster plan``: does a run of the training program fit into the memory of its GPUs. Asks nobody."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import typer
from trainmaster.core.memory import memory_plan
from trainmaster.core.memory.model_shapes import PRESETS, ModelShape
from trainmaster.core.memory.training_runs import (
    DEFAULT_BATCH_SIZE,
    ActivationCheckpointing,
    Optimizer,
    Precision,
    ReduceDtype,
    Run,
    Strategy,
)

from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.screen import print_json, print_lines
from trainmaster_client.errors import InvalidArgumentError

DOES_NOT_FIT = 1
"""The exit code."""
_MOST = 10**9


class Offload(StrEnum):
    TRUE = "true"
    FALSE = "false"


Count = Annotated[int, typer.Option(min=1, max=_MOST)]
CountOrZero = Annotated[int, typer.Option(min=0, max=_MOST)]


def _one_of(words: type[StrEnum]) -> Any:  # noqa: ANN401  of typer's own type, which it does not export
    """With the words in the help: beside the option's name they would be wider than a terminal."""
    return typer.Option(metavar="NAME", help=f"One of {', '.join(words)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """As the training program has them."""

    sequence_length: CountOrZero = 0
    batch_size: Count = DEFAULT_BATCH_SIZE
    gradient_accumulation_steps: Count = 1
    precision: Annotated[Precision, _one_of(Precision)] = Precision.BF16
    reduce_dtype: ReduceDtype = ReduceDtype.FP32
    strategy: Annotated[Strategy, _one_of(Strategy)] = Strategy.FULL_SHARD
    shard_group_size: CountOrZero = 0
    tensor_parallel: Count = 1
    optimizer: Optimizer = Optimizer.ADAMW
    activation_checkpointing: ActivationCheckpointing = ActivationCheckpointing.NONE
    prefetch_blocks: CountOrZero = 1
    cpu_offload: Offload = Offload.FALSE


@with_options
def plan(
    *,
    preset: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(PRESETS)}.")],
    instances: Annotated[str, typer.Option(metavar="TYPE=COUNT", help="E.g. ml.p5.48xlarge=16.")],
    options: RunOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers, in bytes.")] = False,
) -> None:
    """Show what a run of the training program needs of its GPUs, whether that fits, and what would."""
    run = _run(_shape(preset), options)
    found = memory_plan.plan(preset, run, _instances(instances))
    if as_json:
        print_json(memory_plan.as_json(found))
    else:
        print_lines(memory_plan.as_lines(found))
    if not found.estimate.fits:
        raise typer.Exit(DOES_NOT_FIT)


def _run(shape: ModelShape, options: RunOptions) -> Run:
    return Run(
        shape=replace(shape, sequence_length=options.sequence_length or shape.sequence_length),
        batch_size=options.batch_size,
        accumulation=options.gradient_accumulation_steps,
        precision=options.precision,
        reduce_dtype=options.reduce_dtype,
        strategy=options.strategy,
        shard_group_size=options.shard_group_size,
        tensor_parallel=options.tensor_parallel,
        optimizer=options.optimizer,
        activation_checkpointing=options.activation_checkpointing,
        prefetch_blocks=options.prefetch_blocks,
        cpu_offload=options.cpu_offload is Offload.TRUE,
    )


def _shape(preset: str) -> ModelShape:
    """Raises InvalidArgumentError."""
    if preset not in PRESETS:
        raise InvalidArgumentError(
            f"There is no preset {preset!r}.", hint=f"Use one of {', '.join(PRESETS)}."
        )
    return PRESETS[preset]


def _instances(text: str) -> memory_plan.Instances:
    """Raises InvalidArgumentError."""
    try:
        return memory_plan.read_instances(text)
    except ValueError as error:
        hint = "Separate several types with commas."
        raise InvalidArgumentError(f"{error}.", hint=hint) from error
