"""``trainmaster plan``: does a run of the training program fit into the memory of its GPUs. Asks nobody."""

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer
from trainmaster.core.memory import memory_plan
from trainmaster.core.memory.training_runs import (
    DEFAULT_BATCH_SIZE,
    PRESETS,
    ActivationCheckpointing,
    ModelShape,
    Precision,
    ReduceDtype,
    Run,
    Strategy,
)

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


def plan(  # noqa: PLR0913  the options of the training program
    *,
    preset: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(PRESETS)}.")],
    instances: Annotated[str, typer.Option(metavar="TYPE=COUNT", help="As in ml.p5.48xlarge=16.")],
    sequence_length: CountOrZero = 0,
    batch_size: Count = DEFAULT_BATCH_SIZE,
    gradient_accumulation_steps: Count = 1,
    precision: Precision = Precision.BF16,
    reduce_dtype: ReduceDtype = ReduceDtype.FP32,
    strategy: Strategy = Strategy.FULL_SHARD,
    shard_group_size: CountOrZero = 0,
    activation_checkpointing: ActivationCheckpointing = ActivationCheckpointing.NONE,
    prefetch_blocks: CountOrZero = 1,
    cpu_offload: Offload = Offload.FALSE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers, in bytes.")] = False,
) -> None:
    """Tell what a run of the training program needs of its GPUs, whether that fits, and what would."""
    shape = _shape(preset)
    run = Run(
        shape=replace(shape, sequence_length=sequence_length or shape.sequence_length),
        batch_size=batch_size,
        accumulation=gradient_accumulation_steps,
        precision=precision,
        reduce_dtype=reduce_dtype,
        strategy=strategy,
        shard_group_size=shard_group_size,
        activation_checkpointing=activation_checkpointing,
        prefetch_blocks=prefetch_blocks,
        cpu_offload=cpu_offload is Offload.TRUE,
    )
    found = memory_plan.plan(preset, run, _instances(instances))
    if as_json:
        print_json(memory_plan.as_json(found))
    else:
        print_lines(memory_plan.as_lines(found))
    if not found.estimate.fits:
        raise typer.Exit(DOES_NOT_FIT)


def _shape(preset: str) -> ModelShape:
    """Raises InvalidArgumentError."""
    if preset not in PRESETS:
        raise InvalidArgumentError(f"There is no preset {preset!r}.", hint=f"There are {', '.join(PRESETS)}.")
    return PRESETS[preset]


def _instances(text: str) -> memory_plan.Instances:
    """Raises InvalidArgumentError."""
    try:
        return memory_plan.read_instances(text)
    except ValueError as error:
        hint = "Several types stand with a comma between them."
        raise InvalidArgumentError(f"{error}.", hint=hint) from error
