"""Does a run fit? `python -m tools.training.plan --preset tiny --instances ml.g5.xlarge=1`.

Not part of a job: the arithmetic is the control plane's (trainmaster.memory), which judges jobs by it.
"""

import json
import sys
from collections.abc import Sequence
from enum import IntEnum

from trainmaster.core.memory import memory_plan, model_shapes, program_shapes, training_runs, vision_shapes

from training.config import TrainConfig, read_config
from training.config.vision_shape import Shape, VisionShape
from training.errors import ConfigError

_USAGE = """usage: python -m tools.training.plan --preset NAME --instances TYPE=COUNT[,...] [OPTION VALUE]...

What a run of the training program needs of the memory of its GPUs, whether that fits, and what would.
Every option of the program is taken; these matter: --preset --model_config --sequence_length --image_size
--classes --objective --batch_size --gradient_accumulation_steps --optimizer --precision --reduce_dtype
--strategy --shard_group_size --tensor_parallel --activation_checkpointing --prefetch_blocks --cpu_offload
--min_unit_params --lora_rank --lora_targets.
With --json: the numbers, in bytes.
Exit codes: 0 it fits, 1 it does not, 2 wrong usage."""


class ExitCode(IntEnum):
    FITS = 0
    DOES_NOT_FIT = 1
    USAGE = 2


def main(arguments: Sequence[str]) -> int:
    if "--help" in arguments:
        print(_USAGE)
        return ExitCode.FITS
    as_json = "--json" in arguments
    try:
        planned = _planned([word for word in arguments if word != "--json"])
    except (ConfigError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    lines = [json.dumps(memory_plan.as_json(planned), indent=2)] if as_json else memory_plan.as_lines(planned)
    print("\n".join(lines))
    return ExitCode.FITS if planned.estimate.fits else ExitCode.DOES_NOT_FIT


def _planned(arguments: Sequence[str]) -> memory_plan.Plan:
    """Plan the memory of the run. Raises ConfigError or ValueError."""
    instances, options = _without_instances(arguments)
    config = read_config(options, {})
    return memory_plan.plan(config.model_name, run_of(config), memory_plan.read_instances(instances))


def _without_instances(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Split off the text of `--instances`, which is not an option of the program, from the other words."""
    instances, others = [], []
    words = iter(arguments)
    for word in words:
        name, equals, text = word.partition("=")
        if name == "--instances":
            instances.append(text if equals else next(words, ""))
        else:
            others.append(word)
    return " ".join(instances), others


def run_of(config: TrainConfig) -> training_runs.Run:
    """Return the run that these options describe, as the control plane sees it."""
    return training_runs.Run(
        shape=as_planned(config.shape),
        batch_size=config.batch_size,
        accumulation=config.gradient_accumulation_steps,
        precision=program_shapes.Precision(config.precision),
        reduce_dtype=program_shapes.ReduceDtype(config.reduce_dtype),
        strategy=program_shapes.Strategy(config.strategy),
        shard_group_size=config.shard_group_size,
        tensor_parallel=config.tensor_parallel,
        optimizer=program_shapes.OptimizerName(config.optimizer),
        activation_checkpointing=program_shapes.ActivationCheckpointing(config.activation_checkpointing),
        min_unit_params=config.min_unit_params,
        prefetch_blocks=config.prefetch_blocks,
        cpu_offload=config.cpu_offload,
        lora_rank=config.lora_rank,
        lora_targets=config.lora.targets if config.lora else training_runs.LORA_TARGETS,
    )


def as_planned(shape: Shape) -> vision_shapes.Shape:
    """Return the parts of the shape that the memory depends on."""
    planned = vision_shapes.VisionShape if isinstance(shape, VisionShape) else model_shapes.ModelShape
    return planned.of(shape)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
