"""The optimizer, its learning rate, and what guards it against a bad gradient."""

from torch import nn
from torch.optim import AdamW, Optimizer

from training.choices import Precision
from training.config import TrainConfig
from training.optim.any_precision import AnyPrecisionAdamW
from training.optim.gradients import clip, step_if_finite
from training.optim.schedule import learning_rate

__all__ = ["AnyPrecisionAdamW", "clip", "learning_rate", "make_optimizer", "step_if_finite"]

_BETAS = (0.9, 0.95)


def make_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    """AdamW with decay on matrices only, fused into one kernel for all parameters.

    Where even the weights are bf16, one that keeps what bf16 would lose.
    """
    parameters = list(model.parameters())
    groups = [
        {"params": [one for one in parameters if one.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [one for one in parameters if one.ndim == 1], "weight_decay": 0.0},
    ]
    if config.precision is Precision.BF16_PURE:
        return AnyPrecisionAdamW(groups, lr=config.lr, betas=_BETAS)
    return AdamW(groups, lr=config.lr, betas=_BETAS, fused=True)
