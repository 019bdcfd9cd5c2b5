"""LoRA: the matrices of the model stay as they are, and a product of two small ones beside each is trained.

Source: Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, arXiv 2106.09685. No dropout.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.config.choices import Precision
from training.config.decoder_layout import PROJECTIONS
from training.config.decoder_shape import Lora
from training.config.sections import DivisionOptions
from training.models.init import SPREAD, initialise
from training.models.transformer import Backbone

_DOWN, _UP = "lora_a", "lora_b"


class AdaptedLinear(nn.Linear):
    """Layer that computes W x + scale B A x. W and its bias keep the names they have without the adapter."""

    def __init__(self, linear: nn.Linear, lora: Lora) -> None:
        super().__init__(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
        self.weight, self.bias = linear.weight, linear.bias
        self.scale = lora.alpha / lora.rank
        device = linear.weight.device
        self.lora_a = nn.Parameter(torch.empty(lora.rank, linear.in_features, device=device))
        self.lora_b = nn.Parameter(torch.empty(linear.out_features, lora.rank, device=device))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + F.linear(F.linear(x, self.lora_a), self.lora_b) * self.scale


def adapt(model: Backbone, config: DivisionOptions) -> None:
    """Freeze the model and put adapters beside its matrices, before it is sharded, on the meta device.

    Frozen weights need no more digits than are computed with, so they are kept in the compute precision.
    """
    assert config.lora is not None
    frozen = torch.float32 if config.precision is Precision.FP32 else torch.bfloat16
    model.to(frozen).requires_grad_(requires_grad=False)
    for block in model.blocks.values():
        for target in config.lora.targets:
            parent, _, name = PROJECTIONS[target].partition(".")
            part = block.get_submodule(parent)
            linear = part.get_submodule(name)
            assert isinstance(linear, nn.Linear)
            part.register_module(name, AdaptedLinear(linear, config.lora))


def adapted_layers(model: nn.Module) -> Iterator[tuple[str, AdaptedLinear]]:
    """Yield adapted layers with the names of their modules, in the order of the model."""
    for name, module in model.named_modules():
        if isinstance(module, AdaptedLinear):
            yield name, module


@torch.no_grad()
def merged(weight: Tensor, down: Tensor, up: Tensor, *, scale: float) -> Tensor:
    """Return the one matrix that computes the same as both, in the weight's type; it is added up in fp32."""
    return (weight.float() + scale * (up.float() @ down.float())).to(weight.dtype)


def base_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that are not of adapters, by name."""
    adapters = {_DOWN, _UP}
    named = model.named_parameters()
    return {name: parameter for name, parameter in named if name.rpartition(".")[2] not in adapters}


def trained_part(model: nn.Module) -> nn.Module:
    """Return a module of the trained parameters alone, each once: it is what optimizers and checkpoints see.

    It is the model itself where all of it is trained. Else frozen parameters are left out, and so is a head
    that is the embedding, which a checkpoint would hold twice.
    """
    trained = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if len(trained) == sum(1 for _ in model.named_parameters(remove_duplicate=False)):
        return model
    part = nn.Module()
    for name, parameter in trained.items():
        _place(part, name).register_parameter(name.rpartition(".")[2], parameter)
    return part


def _place(root: nn.Module, name: str) -> nn.Module:
    """Return the module that holds the parameter of this name; it is made where there is none."""
    place = root
    for word in name.split(".")[:-1]:
        if word not in dict(place.named_children()):
            place.register_module(word, nn.Module())
        place = place.get_submodule(word)
    return place


@torch.no_grad()
def initialise_adapters(model: nn.Module, *, seed: int, layers: int) -> None:
    """Fill adapters so that they change nothing at first: B is zero, and A is as wide as a new layer's."""
    adapted = dict(adapted_layers(model))
    initialise(model, seed=seed, layers=layers, only={f"{name}.{_DOWN}" for name in adapted})
    for layer in adapted.values():
        layer.lora_a.mul_(1 / (SPREAD * math.sqrt(3 * layer.in_features)))
        layer.lora_b.zero_()
