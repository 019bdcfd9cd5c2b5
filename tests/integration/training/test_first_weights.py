"""What is loaded is not drawn first: an attempt that resumes, and one that starts from given weights."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.integration.training.worlds import in_world
from training.config import read_config
from training.job import run_in
from training.metrics import event_in, metrics_in
from training.models import init
from training.preemptible.preempt import StopRequest
from training.ranks.world import World

_RANDOM = re.compile(r"aten::(rand|normal|uniform|bernoulli|multinomial|exponential|log_normal)")


class _Draws(TorchDispatchMode):
    """Counts what torch draws; on the meta device nothing is."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if _RANDOM.match(func.name()) and getattr(made, "device", None) != torch.device("meta"):
            self.drawn.append(func.name())
        return made


def _attempt(world: World, *arguments: str) -> dict[str, Any]:
    """Run one; how many numbers this rank drew, and what the first rank printed."""
    config = read_config(arguments, {})
    numbers, own = init.numbers, []

    def counted(places: range, *, key: int, device: torch.device) -> torch.Tensor:
        own.append(len(places))
        return numbers(places, key=key, device=device)

    with patch.object(init, "numbers", counted), _Draws() as torchs, redirect_stdout(StringIO()) as said:
        code = run_in(world, config, {}, StopRequest(seconds=60))
    return {"code": code, "own": sum(own), "torch": torchs.drawn, "lines": said.getvalue().splitlines()}


def _losses(attempt: dict[str, Any]) -> dict[str, str]:
    return {found["step"]: found["loss"] for line in attempt["lines"] if (found := metrics_in(line))}


def _options(root: Path, steps: int, *more: str) -> tuple[str, ...]:
    return (
        f"--checkpoint_dir={root / 'checkpoints'}",
        f"--model_dir={root / 'model'}",
        "--sequence_length=16",
        "--batch_size=4",
        f"--steps={steps}",
        *more,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [1, 2])
def test_M5_a_resume_draws_no_number_on_any_rank(tmp_path: Path, ranks: int) -> None:
    whole = in_world(ranks, _attempt, *_options(tmp_path / "whole", 4))
    first = in_world(ranks, _attempt, *_options(tmp_path / "job", 2))
    resumed = in_world(ranks, _attempt, *_options(tmp_path / "job", 4))
    assert {one["code"] for one in (*whole, *first, *resumed)} == {0}
    assert all(one["own"] > 0 for one in first), "each rank draws its own rows"
    assert [(one["own"], one["torch"]) for one in resumed] == [(0, [])] * ranks
    assert _losses(resumed[0]) == {step: loss for step, loss in _losses(whole[0]).items() if int(step) > 2}
    (told,) = (
        found for line in resumed[0]["lines"] if (found := event_in(line)) and found["kind"] == "resume"
    )
    assert told.keys() == {"kind", "step", "look_s", "plan_s", "read_s", "verify_s", "apply_s", "data_s"}


@pytest.mark.thorough
def test_M5_an_attempt_with_init_from_draws_no_number(tmp_path: Path) -> None:
    in_world(1, _attempt, *_options(tmp_path / "base", 1))
    (given,) = in_world(1, _attempt, *_options(tmp_path / "job", 2, f"--init_from={tmp_path / 'base/model'}"))
    assert (given["code"], given["own"], given["torch"]) == (0, 0, [])
    assert any(line.startswith("weights loaded from") for line in given["lines"])


@pytest.mark.thorough
def test_M5_each_rank_draws_its_own_rows_and_the_weights_are_those_of_one_rank(tmp_path: Path) -> None:
    attempts = {ranks: in_world(ranks, _attempt, *_options(tmp_path / f"{ranks}", 1)) for ranks in (1, 2)}
    drawn = {ranks: [one["own"] for one in found] for ranks, found in attempts.items()}
    assert sum(drawn[2]) == sum(drawn[1])
    assert max(drawn[2]) < 0.6 * drawn[1][0]
    losses = [float(_losses(found[0])["1"]) for found in attempts.values()]
    assert losses[0] == pytest.approx(losses[1], abs=1e-7)
