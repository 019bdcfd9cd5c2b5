"""A checkpoint has one pair of hashes, however many ranks wrote it."""

from pathlib import Path
from typing import Any

import torch

from benchmarks.training.proof.spoil import hashes_of
from tests.integration.training.worlds import in_world
from training.config import TrainConfig
from training.config.choices import Precision
from training.job import make_model
from training.optim import make_optimizer
from training.preemptible.checkpoint import Checkpointer, LocalStore
from training.ranks.world import World


def _save(world: World, root: Path, seed: int = 1, moment: float = 0.0) -> None:
    """Weights that follow from the seed, and first moments that are all alike."""
    config = TrainConfig(seed=seed, precision=Precision.BF16)
    model = make_model(config, world)
    optimizer = make_optimizer(model, config)
    checkpointer = Checkpointer(LocalStore(root), model=model, optimizer=optimizer, asynchronous=False)
    checkpointer.load_newest()
    checkpointer.save(1)  # makes the moments
    with torch.no_grad():
        for state in optimizer.state.values():
            state["exp_avg"].fill_(moment)
    checkpointer.save(2)


def _hashes(root: Path, ranks: int, **changes: Any) -> dict[str, str]:
    place = root / "-".join([str(ranks), *map(str, changes.values())])
    place.mkdir()
    in_world(ranks, _save, place, **changes)
    return hashes_of(place / "step-00000002")


def test_hashes_follow_from_the_numbers_not_from_the_ranks(tmp_path: Path) -> None:
    one = _hashes(tmp_path, 1)
    assert set(one) == {"params", "optimizer"}
    assert all(len(text) == 64 for text in one.values())
    assert _hashes(tmp_path, 2) == one
    other_weights = _hashes(tmp_path, 1, seed=2)
    assert other_weights["params"] != one["params"]
    assert other_weights["optimizer"] == one["optimizer"]
    other_moments = _hashes(tmp_path, 1, moment=1e-9)
    assert other_moments["params"] == one["params"]
    assert other_moments["optimizer"] != one["optimizer"]
