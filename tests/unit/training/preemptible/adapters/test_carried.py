"""What goes to the next attempt beside the library's checkpoint."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from training.preemptible.adapters import carried
from training.preemptible.adapters.carried import (
    agreed,
    gradients_of,
    read_carried,
    set_gradients,
    write_carried,
)
from training.preemptible.adapters.random_numbers import Aside, put_back, random_numbers


def _drawn() -> tuple[float, float, float]:
    legacy = float(np.random.rand())  # noqa: NPY002  # what scripts draw from
    return random.random(), legacy, torch.rand(1).item()


def test_it_comes_back_with_the_random_numbers_of_then(tmp_path: Path) -> None:
    write_carried(tmp_path / "step-7", {"epoch": 2, "losses": (0.5, None)})
    then = _drawn()
    content = read_carried(tmp_path / "step-7")
    assert content is not None
    assert (content["epoch"], content["losses"]) == (2, (0.5, None))
    put_back(content["numbers"])
    assert _drawn() == then


def test_a_checkpoint_from_before_has_none(tmp_path: Path) -> None:
    assert read_carried(tmp_path) is None
    assert read_carried(None) is None


def test_S6_a_new_rank_takes_the_first_ranks_and_draws_other_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_carried(tmp_path, {"epoch": 2})
    first = read_carried(tmp_path)
    before = random_numbers()
    monkeypatch.setattr(carried, "rank", lambda: 3)
    new = read_carried(tmp_path)
    assert first is not None
    assert new is not None
    assert new["epoch"] == 2
    assert not torch.equal(new["numbers"]["torch"], first["numbers"]["torch"])
    assert torch.equal(before["torch"], torch.get_rng_state())


def test_gradients_of_half_a_step_come_back() -> None:
    model, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    model.weight.grad = torch.ones(1, 2)
    set_gradients(other, gradients_of(model))
    assert other.weight.grad is not None
    assert torch.equal(other.weight.grad, torch.ones(1, 2))
    assert other.bias.grad is None


def test_alone_everything_is_agreed() -> None:
    assert agreed((7, ())) == (7, ())


def test_numbers_aside_go_on_and_leave_the_others_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(4).tolist()
    torch.manual_seed(1)
    aside, drawn, others = Aside(5), [], []
    for _ in range(4):
        with aside.taken():
            aside.take()  # twice is once
            drawn.append(torch.rand(1).item())
        others.append(torch.rand(1).item())
    with Aside(5).taken():
        assert drawn == torch.rand(4).tolist()
    assert others == expected
