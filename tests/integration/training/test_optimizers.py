"""8-bit AdamW and Muon in the program: resumed to the last bit, and alike on any number of ranks."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.training.worlds import in_world
from training.config import read_config
from training.job import run_in
from training.preemptible.preempt import StopRequest
from training.ranks.world import World

pytestmark = pytest.mark.thorough

_OPTIONS = ("--steps=6", "--precision=fp32", "--checkpoint_every=3")
_TEXTS = ("--preset=tiny", "--sequence_length=32")
_IMAGES = ("--preset=vit-nano",)


def _run(world: World, root: Path, optimizer: str, model: Sequence[str] = _TEXTS) -> int:
    places = (
        f"--checkpoint_dir={root}",
        f"--model_dir={root / 'model'}",
        f"--metrics_file={root / 'metrics'}",
    )
    options = (
        *_OPTIONS,
        *model,
        *places,
        f"--optimizer={optimizer}",
        "--export=false",
        "--checkpoint_async=false",
    )
    return run_in(world, read_config(options, {}), {}, StopRequest())


def _losses(root: Path) -> list[float]:
    lines = (root / "metrics").read_text().splitlines()
    return [float.fromhex(json.loads(line)["loss_hex"]) for line in lines]


@pytest.mark.parametrize("optimizer", ["adamw_8bit", "muon"])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path: Path, optimizer: str) -> None:
    assert in_world(2, _run, tmp_path, optimizer) == [0, 0]
    last = tmp_path / "step-00000006"
    shards = {one.name: one.read_bytes() for one in last.glob("*.distcp")}
    assert len(shards) == 2
    whole = _losses(tmp_path)
    shutil.rmtree(last)
    assert in_world(2, _run, tmp_path, optimizer) == [0, 0]
    assert _losses(tmp_path) == [*whole, *whole[3:]]
    assert {one.name: one.read_bytes() for one in last.glob("*.distcp")} == shards


@pytest.mark.parametrize(("optimizer", "apart"), [("adamw_8bit", 1e-4), ("muon", 1e-6)])
@pytest.mark.parametrize("model", [_TEXTS, _IMAGES], ids=["texts", "images"])
def test_ranks_change_next_to_nothing(
    tmp_path: Path, optimizer: str, apart: float, model: Sequence[str]
) -> None:
    """A moment near the middle of two 8-bit levels may fall to either by the last bit of a sum."""
    for ranks in (1, 2):
        assert in_world(ranks, _run, tmp_path / str(ranks), optimizer, model) == [0] * ranks
    assert _losses(tmp_path / "2") == pytest.approx(_losses(tmp_path / "1"), rel=0, abs=apart)
    # A checkpoint of two ranks is one for any number: the third step's is resumed from by one.
    shutil.rmtree(tmp_path / "2" / "step-00000006")
    assert in_world(1, _run, tmp_path / "2", optimizer, model) == [0]
    assert _losses(tmp_path / "2")[-3:] == pytest.approx(_losses(tmp_path / "1")[3:], rel=0, abs=apart)
