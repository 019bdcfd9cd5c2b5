"""``trainmaster plan``: does a run of the training program fit into the memory of its GPUs. Asks nobody."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer
from trainmaster.core.memory import memory_plan
from trainmaster.core.memory.program_shapes import (
    ActivationCheckpointing,
    Objective,
    OptimizerName,
    Precision,
    ReduceDtype,
    Strategy,
)
from trainmaster.core.memory.training_runs import DEFAULT_BATCH_SIZE, Run, shape_of
from trainmaster.core.memory.vision_shapes import EVERY_PRESET, Shape

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
    """Make an option that lists its words in the help: beside its name they would not fit a terminal."""
    return typer.Option(metavar="NAME", help=f"One of {', '.join(words)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options as the training program has them."""

    sequence_length: Annotated[int, typer.Option(min=0, max=_MOST, help="Of texts.")] = 0
    image_size: Annotated[int, typer.Option(min=0, max=_MOST, help="Pixels of an image's side.")] = 0
    classes: Annotated[int, typer.Option(min=0, max=_MOST, help="Of images.")] = 0
    objective: Annotated[Objective, typer.Option(help="Of images.")] = Objective.CLASSIFY
    batch_size: Count = DEFAULT_BATCH_SIZE
    gradient_accumulation_steps: Count = 1
    precision: Annotated[Precision, _one_of(Precision)] = Precision.AUTO
    reduce_dtype: ReduceDtype = ReduceDtype.FP32
    strategy: Annotated[Strategy, _one_of(Strategy)] = Strategy.FULL_SHARD
    shard_group_size: CountOrZero = 0
    tensor_parallel: Count = 1
    optimizer: OptimizerName = OptimizerName.ADAMW
    activation_checkpointing: ActivationCheckpointing = ActivationCheckpointing.NONE
    prefetch_blocks: CountOrZero = 1
    cpu_offload: Offload = Offload.FALSE


@with_options
def plan(
    *,
    preset: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(EVERY_PRESET)}.")],
    instances: Annotated[str, typer.Option(metavar="TYPE=COUNT", help="E.g. ml.p5.48xlarge=16.")],
    options: RunOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers, in bytes.")] = False,
) -> None:
    """Show what a run of the training program needs of its GPUs, whether that fits, and what would."""
    run = _run(_shape(preset, options), options)
    memory = memory_plan.plan(preset, run, _instances(instances))
    if as_json:
        print_json(memory_plan.as_json(memory))
    else:
        print_lines(memory_plan.as_lines(memory))
    if not memory.estimate.fits:
        raise typer.Exit(DOES_NOT_FIT)


def _run(shape: Shape, options: RunOptions) -> Run:
    return Run(
        shape=shape,
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


def _shape(preset: str, options: RunOptions) -> Shape:
    """Raises InvalidArgumentError."""
    if preset not in EVERY_PRESET:
        raise InvalidArgumentError(
            f"There is no preset {preset!r}.", hint=f"Use one of {', '.join(EVERY_PRESET)}."
        )
    try:
        return shape_of(
            EVERY_PRESET[preset],
            sequence_length=options.sequence_length,
            image_size=options.image_size,
            classes=options.classes,
            objective=options.objective,
        )
    except ValueError as error:
        raise InvalidArgumentError(f"{error}.", hint="Leave it out, or give another preset.") from error


def _instances(text: str) -> memory_plan.Instances:
    """Raises InvalidArgumentError."""
    try:
        return memory_plan.read_instances(text)
    except ValueError as error:
        hint = "Separate several types with commas."
        raise InvalidArgumentError(f"{error}.", hint=hint) from error
