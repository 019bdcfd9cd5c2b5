import torch
from torch import nn
from torch.optim import AdamW

from training.config import TrainConfig
from training.config.choices import Precision
from training.optim import AnyPrecisionAdamW, make_optimizer


def _model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4, bias=False), nn.RMSNorm(4))


def test_only_matrices_decay() -> None:
    decaying, free = make_optimizer(_model(), TrainConfig(weight_decay=0.1)).param_groups
    assert [one.ndim for one in decaying["params"]] == [2]
    assert decaying["weight_decay"] == 0.1
    assert [one.ndim for one in free["params"]] == [1]
    assert free["weight_decay"] == 0.0


def test_weights_of_bf16_get_the_optimizer_that_keeps_small_updates() -> None:
    pure = make_optimizer(_model().to(torch.bfloat16), TrainConfig(precision=Precision.BF16_PURE))
    assert isinstance(pure, AnyPrecisionAdamW)
    assert isinstance(make_optimizer(_model(), TrainConfig(precision=Precision.BF16)), AdamW)
