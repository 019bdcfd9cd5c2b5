import pytest
import torch
from torch import Tensor
from torch.optim import AdamW

from training.models import optimizers
from training.optim import AnyPrecisionAdamW


def _parameter(value: float, number: int = 8) -> Tensor:
    return torch.full((number,), value, dtype=torch.bfloat16, requires_grad=True)


def test_updates_too_small_for_bf16_add_up() -> None:
    parameter = _parameter(1.0)
    optimizer = AnyPrecisionAdamW([parameter], lr=1e-4)
    for _ in range(100):
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    # Each step is 1e-4, a fortieth of what bf16 can show at 1.
    assert parameter.tolist() == [pytest.approx(0.99, abs=0.002)] * 8
    state = optimizer.state[parameter]
    assert (parameter.double() + state["compensation"].double()).tolist() == [
        pytest.approx(0.99, abs=5e-5)
    ] * 8


def test_plain_adamw_would_lose_them() -> None:
    parameter = _parameter(1.0)
    optimizer = AdamW([parameter], lr=1e-4, weight_decay=0.0, fused=True)
    for _ in range(100):
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    assert parameter.tolist() == [1.0] * 8


def test_decay_too_small_for_bf16_adds_up_too() -> None:
    parameter = _parameter(1.0)
    optimizer = AnyPrecisionAdamW([parameter], lr=1e-3, weight_decay=0.1)
    for _ in range(200):
        parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
    assert parameter.tolist() == [pytest.approx(0.9802, abs=0.002)] * 8  # (1 - 1e-4) ** 200


def test_all_of_its_state_is_bf16() -> None:
    parameter = _parameter(1.0)
    optimizer = AnyPrecisionAdamW([parameter], lr=1e-3)
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    state = optimizer.state[parameter]
    kinds = {name: value.dtype for name, value in state.items() if name != "step"}
    assert kinds == dict.fromkeys(("exp_avg", "exp_avg_sq", "compensation"), torch.bfloat16)
    assert state["step"].item() == 1.0


def test_a_step_that_is_not_made_does_not_add_the_rest_of_the_last_one_again() -> None:
    parameter = _parameter(1.0, 1)
    optimizer = AnyPrecisionAdamW([parameter], lr=1e-3)
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    # Once more added, this rest would change the last bit of this weight.
    weight, rest = -0.00029754638671875, -1.9073486328125e-06
    with torch.no_grad():
        parameter.fill_(weight)
    optimizer.state[parameter]["compensation"].fill_(rest)
    optimizer.found_inf = torch.tensor(1.0)
    optimizer.step()
    assert parameter.item() == weight
    assert optimizer.state[parameter]["compensation"].item() == rest


def test_large_parameters_are_added_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizers, "_CHUNK", 20)
    parameters = [_parameter(0.0, number) for number in (8, 8, 30, 8, 12, 1)]
    chunks = [[one.numel() for one in chunk] for chunk in optimizers._chunks(parameters)]
    assert chunks == [[8, 8], [30], [8, 12], [1]]
