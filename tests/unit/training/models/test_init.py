"""First weights: normal numbers that are functions of their place."""

import pytest
import torch
from torch import nn

from training.models.init import initialise, numbers

_CPU = torch.device("cpu")
_FIRST = [0.548731, -2.271250, -1.334714]


def _made(*, seed: int = 1, layers: int = 8) -> dict[str, torch.Tensor]:
    model = nn.ModuleDict(
        {
            "query": nn.Linear(300, 70),
            "key": nn.Linear(300, 70, bias=False),
            "norm": nn.RMSNorm(300),
            "attention": nn.ModuleDict({"output": nn.Linear(70, 300, bias=False)}),
        }
    )
    initialise(model, seed=seed, layers=layers)
    return {name: one.detach() for name, one in model.named_parameters()}


def test_the_numbers_are_normal() -> None:
    drawn = numbers(range(400_000), key=7, device=_CPU).double()
    moments = [drawn.pow(power).mean().item() for power in (1, 2, 3, 4)]
    assert moments == pytest.approx([0, 1, 0, 3], abs=0.03)
    assert (drawn[1:] * drawn[:-1]).mean().item() == pytest.approx(0, abs=0.01)
    assert 4.0 < drawn.abs().max().item() < 6.5


def test_a_part_of_them_is_that_part_of_all_of_them_to_the_last_bit() -> None:
    whole = numbers(range(50_000), key=7, device=_CPU)
    for first, last in ((0, 1), (1, 2), (16_383, 16_386), (12_345, 45_678)):
        assert numbers(range(first, last), key=7, device=_CPU).equal(whole[first:last])


def test_they_stay_what_they_are() -> None:
    """Another generator would make another training of the same seed."""
    assert numbers(range(3), key=1, device=_CPU).tolist() == pytest.approx(_FIRST, abs=1e-6)


def test_norms_are_ones_biases_zeros_and_what_adds_to_the_stream_is_smaller() -> None:
    made = _made()
    assert made["norm.weight"].eq(1).all()
    assert made["query.bias"].eq(0).all()
    assert made["query.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    assert made["attention.output.weight"].std().item() == pytest.approx(0.005, rel=0.05)


def test_seeds_and_names_make_others() -> None:
    made = _made()
    assert not made["query.weight"].equal(made["key.weight"])
    assert not made["query.weight"].equal(_made(seed=2)["query.weight"])
    assert made["query.weight"].equal(_made()["query.weight"])


def test_only_what_is_named_is_filled() -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    base, adapter = (one.detach().clone() for one in model.parameters())
    initialise(model, seed=1, layers=1, only={"1.weight"})
    now = list(model.parameters())
    assert now[0].equal(base)
    assert not now[1].equal(adapter)
