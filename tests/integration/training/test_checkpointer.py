"""The real model and optimizer, saved and loaded in this process as the one rank."""

from pathlib import Path

import pytest
import torch
from torch.distributed.tensor import DTensor

from training.checkpoint import CheckpointDirectory, Checkpointer
from training.config import TrainConfig
from training.errors import CheckpointMismatchError
from training.job import make_model
from training.optim import make_optimizer
from training.world import World


class Trained:
    """A model after one optimizer step, so that weights and moments are its own."""

    def __init__(self, root: Path, world: World, *, seed: int = 1, steps: int = 1) -> None:
        self.config = TrainConfig(seed=seed, checkpoint_dir=root)
        self.model = make_model(self.config, world)
        self.optimizer = make_optimizer(self.model, weight_decay=0.1)
        for _ in range(steps):
            tokens = torch.randint(256, (1, 8), generator=torch.Generator().manual_seed(seed))
            self.model(tokens).float().logsumexp(-1).sum().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.checkpointer = Checkpointer(
            CheckpointDirectory(root),
            model=self.model,
            optimizer=self.optimizer,
            options={"seed": str(seed)},
            total_steps=60,
        )

    def numbers(self) -> list[torch.Tensor]:
        """Weights, then moments, in the order of the parameters."""
        found = [one.detach() for one in self.model.parameters()]
        for one in self.model.parameters():
            state = self.optimizer.state[one]
            found += [state["exp_avg"], state["exp_avg_sq"], state["step"]]
        return [one.full_tensor().clone() if isinstance(one, DTensor) else one.clone() for one in found]


def test_weights_and_moments_come_back_into_a_fresh_model(tmp_path: Path, world: World) -> None:
    saved = Trained(tmp_path, world, seed=1)
    saved.checkpointer.save(20)
    fresh = Trained(tmp_path, world, seed=1, steps=0)
    assert fresh.checkpointer.load_newest() == 20
    pairs = zip(saved.numbers(), fresh.numbers(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_the_line_about_the_resume_names_file_and_hash(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = Trained(tmp_path, world)
    assert trained.checkpointer.load_newest() == 0
    trained.checkpointer.save(20)
    trained.checkpointer.load_newest()
    first, second = capsys.readouterr().out.splitlines()
    assert first == "starting from scratch"
    assert second.startswith("resumed from step=20 file=step-00000020/__0_0.distcp sha256=")
    assert len(second.rpartition("=")[2]) == 64


def test_a_torn_checkpoint_is_skipped_for_the_one_before_it(
    tmp_path: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = Trained(tmp_path, world)
    trained.checkpointer.save(5)
    trained.checkpointer.save(10)
    newest = tmp_path / "step-00000010/__0_0.distcp"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert trained.checkpointer.load_newest() == 5
    assert "skipping torn checkpoint step-00000010: __0_0.distcp has" in capsys.readouterr().out


def test_a_copy_without_dotfiles_loads(tmp_path: Path, world: World) -> None:
    trained = Trained(tmp_path, world)
    trained.checkpointer.save(5)
    (tmp_path / "step-00000005/.metadata").unlink()
    assert trained.checkpointer.load_newest() == 5


def test_a_checkpoint_of_another_seed_is_refused_and_stays(tmp_path: Path, world: World) -> None:
    Trained(tmp_path, world, seed=1).checkpointer.save(5)
    other = Trained(tmp_path, world, seed=2)
    before = other.numbers()
    with pytest.raises(CheckpointMismatchError) as caught:
        other.checkpointer.load_newest()
    assert caught.value.differences == {"seed": ("1", "2")}
    assert (tmp_path / "step-00000005/manifest.json").exists()
    assert all(torch.equal(one, now) for one, now in zip(before, other.numbers(), strict=True))
