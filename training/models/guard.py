"""What another attempt may not change, or it would silently continue another training.

Kept with each checkpoint, which refuses an attempt that says otherwise. The weight decay comes back with the
optimizer's state, so a new value would be ignored. Steps, batch size, learning rate and the number of ranks
may change.
"""

from collections.abc import Mapping

from training.config import TrainConfig
from training.interop.importing import hashed_weights, load_weights
from training.model import Backbone
from training.models.families import fixed_options
from training.options.choices import OptimizerName, Precision


def guard_of(config: TrainConfig, data: str) -> dict[str, str]:
    """``data``: its identity."""
    found = {
        "preset": config.model_name,
        "sequence_length": str(config.shape.sequence_length),
        "seed": str(config.seed),
        "weight_decay": str(config.weight_decay),
        "data": data,
        "weights": "bf16" if config.precision is Precision.BF16_PURE else "fp32",
    }
    # Only where they are not what they always were: a checkpoint of before does not name them.
    if config.optimizer is not OptimizerName.ADAMW:
        found["optimizer"] = config.optimizer
    return found | fixed_options(config)


def guard_of_base(config: TrainConfig, env: Mapping[str, str], model: Backbone) -> dict[str, str]:
    """Load what adapters are trained beside, which no checkpoint holds; what of it may not change."""
    if config.lora is None:
        return {}
    load_weights(model, config.init_from, env)
    return {"lora": str(config.lora), "base": hashed_weights(config.init_from, env)}
