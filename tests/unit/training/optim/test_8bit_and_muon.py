from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import AdamW

from training.config import read_config
from training.config.decoder_shape import ModelShape
from training.errors import ConfigError
from training.models.optimizers import AdamW8bit, _dequantised, _levels, _quantised
from training.models.transformer import Transformer
from training.optim import Muon, _orthogonal, make_optimizer

_SHAPE = ModelShape(layers=2, width=32, heads=4, kv_heads=2, hidden=64, vocabulary=50, sequence_length=16)
_CPU = torch.device("cpu")


def _drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", ["exp_avg", "exp_avg_sq"])
def test_there_are_256_levels_up_to_one(name: str) -> None:
    levels = _levels(name, _CPU)
    assert len(levels.unique()) == 256
    assert levels[-1] == 1
    assert (levels[0] < 0) == (name == "exp_avg")


def test_a_value_comes_back_within_a_few_percent_of_the_largest_of_its_block() -> None:
    values = _drawn(7, 600) * torch.logspace(-4, 4, 7).unsqueeze(1)
    levels = _levels("exp_avg", _CPU)
    codes, scales = _quantised(values, levels)
    assert (codes.shape, codes.dtype, scales.shape) == (values.shape, torch.uint8, (7, 3))
    back = _dequantised(codes, scales, levels)
    largest = values.abs().amax(dim=1, keepdim=True)
    assert ((back - values).abs() / largest).max() < 0.01
    large = values.abs() > 0.1 * largest
    assert ((back - values).abs() / values.abs())[large].max() < 0.07


def test_a_square_never_becomes_nothing() -> None:
    levels = _levels("exp_avg_sq", _CPU)
    back = _dequantised(*_quantised(torch.tensor([[1.0, 1e-12, 0.0]]), levels), levels)
    assert (back > 0).all()
    assert back[0, 1] < 1e-6


@pytest.mark.thorough
def test_an_8_bit_training_stays_near_that_with_whole_moments() -> None:
    target = _drawn(48, 300)
    found = []
    for kind in (AdamW, AdamW8bit):
        weight = nn.Parameter(torch.zeros(48, 300))
        optimizer = kind([weight], lr=0.02, betas=(0.9, 0.95), weight_decay=0.0)
        for _ in range(100):
            weight.grad = weight.detach() - target
            optimizer.step()
        found.append((weight.detach() - target).square().mean().item())
    assert found[1] == pytest.approx(found[0], rel=0.1)
    assert found[0] < 0.3 * target.square().mean().item()


def test_the_moments_of_a_matrix_take_a_byte_each() -> None:
    weight, vector = nn.Parameter(_drawn(4, 512)), nn.Parameter(_drawn(8))
    optimizer = AdamW8bit([weight, vector], lr=0.1)
    weight.grad, vector.grad = _drawn(4, 512), _drawn(8)
    optimizer.step()
    state = optimizer.state[weight]
    assert {name: (one.dtype, one.numel()) for name, one in state.items() if name != "step"} == {
        "exp_avg": (torch.uint8, 2048),
        "exp_avg_scale": (torch.float32, 8),
        "exp_avg_sq": (torch.uint8, 2048),
        "exp_avg_sq_scale": (torch.float32, 8),
    }
    assert optimizer.state[vector]["exp_avg"].dtype is torch.float32


def test_loading_keeps_the_bytes_bytes() -> None:
    weights = [nn.Parameter(_drawn(4, 300)) for _ in range(2)]
    optimizers = [AdamW8bit([one], lr=0.1) for one in weights]
    weights[0].grad = _drawn(4, 300, seed=2)
    optimizers[0].step()
    optimizers[1].load_state_dict(optimizers[0].state_dict())
    state = optimizers[1].state[weights[1]]
    assert state["exp_avg"].dtype is torch.uint8
    assert torch.equal(state["exp_avg"], optimizers[0].state[weights[0]]["exp_avg"])


@pytest.mark.parametrize("kind", [AdamW8bit, Muon])
def test_a_step_that_is_not_made_changes_nothing(kind: type[AdamW8bit] | type[Muon]) -> None:
    weight, vector = nn.Parameter(_drawn(8, 300)), nn.Parameter(_drawn(8))
    groups: list[dict[str, Any]] = [{"params": [weight], "orthogonal": True}, {"params": [vector]}]
    optimizer = kind(groups, lr=0.1, weight_decay=0.1)

    def step(gradient: float, *, found_inf: float) -> None:
        weight.grad, vector.grad = torch.full((8, 300), gradient), torch.full((8,), gradient)
        optimizer.found_inf = torch.tensor(found_inf)
        optimizer.step()

    step(0.5, found_inf=0.0)
    tensors = [weight, vector, *(one for state in optimizer.state.values() for one in state.values())]
    before = [one.clone() for one in tensors]
    step(float("nan"), found_inf=1.0)
    assert all(torch.equal(one, old) for one, old in zip(tensors, before, strict=True))


@pytest.mark.parametrize("shape", [(16, 64), (64, 16), (32, 32)])
def test_an_orthogonal_update_has_singular_values_near_one(shape: tuple[int, int]) -> None:
    values = torch.linalg.svdvals(_orthogonal(_drawn(*shape)))
    assert values.min() > 0.3
    assert values.max() < 1.3


def test_muon_is_for_matrices_of_blocks_and_its_step_is_about_as_large_as_adamws() -> None:
    model = Transformer(_SHAPE)
    config = read_config(["--optimizer", "muon", "--lr", "0.01", "--precision", "fp32"], {})
    optimizer = make_optimizer(model, config)
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    for one in model.parameters():
        one.grad = _drawn(*one.shape)
    optimizer.step()
    for name, one in model.named_parameters():
        is_of_muon = name.startswith("blocks.") and one.ndim == 2
        assert set(optimizer.state[one]) == (
            {"step", "momentum"} if is_of_muon else {"step", "exp_avg", "exp_avg_sq"}
        )
        change = (one.detach() - before[name]).square().mean().sqrt().item()
        assert 0.0005 < change < 0.02, name


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ConfigError, match="optimizer muon needs fp32 weights"):
        read_config(["--optimizer", "muon", "--precision", "bf16_pure"], {})
    with pytest.raises(ConfigError, match="cpu_offload does not go with optimizer muon"):
        read_config(["--optimizer", "muon", "--cpu_offload", "true"], {})
