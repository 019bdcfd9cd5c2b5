import pytest
import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from training.optim import AnyPrecisionAdamW, clip, step_if_finite


def _model(kind: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4)).to(kind)


def _set_gradients(model: nn.Module, value: float) -> None:
    for one in model.parameters():
        one.grad = torch.full_like(one, value)


def _everything(model: nn.Module, optimizer: Optimizer) -> list[Tensor]:
    """Weights and the optimizer's state, as they are now."""
    states = [value for one in model.parameters() for value in optimizer.state[one].values()]
    return [one.detach().clone() for one in (*model.parameters(), *states)]


# 16 * 16 + 16 + 16 * 4 + 4 = 340 gradients
@pytest.mark.parametrize(
    ("value", "most", "norm", "clipped"),
    [
        pytest.param(2.0, 340**0.5, 2 * 340**0.5, 1.0, id="a norm above the most is scaled down to it"),
        pytest.param(2.0, 100.0, 2 * 340**0.5, 2.0, id="one below stays"),
    ],
)
def test_clip(value: float, most: float, norm: float, clipped: float) -> None:
    model = _model()
    _set_gradients(model, value)
    assert clip(model, most).item() == pytest.approx(norm, rel=1e-6)
    for one in model.parameters():
        assert one.grad is not None
        assert torch.allclose(one.grad, torch.tensor(clipped))


def test_the_norm_of_bf16_gradients_is_exact() -> None:
    model = _model(torch.bfloat16)
    _set_gradients(model, 1.0)
    norm = clip(model, 1000.0)
    assert norm.dtype is torch.float32
    assert norm.item() == pytest.approx(340**0.5, rel=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_the_norm_does_not_depend_on_how_gradients_are_divided(seed: int) -> None:
    gradient = torch.randn(64, 33, generator=torch.Generator().manual_seed(seed))
    norms = []
    for parts in (1, 2, 3, 7):
        model = nn.ParameterList(nn.Parameter(torch.zeros_like(one)) for one in gradient.chunk(parts))
        for one, part in zip(model, gradient.chunk(parts), strict=True):
            one.grad = part.clone()
        norms.append(clip(model, 1.0).item())
    assert len(set(norms)) == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_step_whose_gradients_are_not_finite_changes_nothing_at_all(kind: torch.dtype, bad: float) -> None:
    model = _model(kind)
    optimizer: Optimizer = (
        AdamW(model.parameters(), lr=0.01, fused=True)
        if kind is torch.float32
        else AnyPrecisionAdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    )
    for _ in range(20):
        for one in model.parameters():
            one.grad = torch.randn_like(one)
        step_if_finite(optimizer, clip(model, 1.0))
    before = _everything(model, optimizer)
    first = next(model.parameters())
    assert first.grad is not None
    first.grad[0, 0] = bad
    step_if_finite(optimizer, clip(model, 1.0))
    assert all(torch.equal(one, now) for one, now in zip(before, _everything(model, optimizer), strict=True))

    _set_gradients(model, 0.5)
    step_if_finite(optimizer, clip(model, 1.0))
    assert not torch.equal(before[0], first)
