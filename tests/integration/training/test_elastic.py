"""A job whose attempts have other numbers of ranks: losses and samples as if they had not."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.training.test_preemption import StopWhen
from tests.integration.training.worlds import in_world
from tests.unit.training.data.corpora import written
from training.config import read_config
from training.errors import ConfigError
from training.job import run_in
from training.preemptible.preempt import StopRequest
from training.ranks.world import World

_SEQUENCES, _LENGTH, _BATCH = 16, 8, 4
_STEPS = 12  # three epochs of four steps
_LIVES = ((2, 3), (4, 6), (1, 9), (2, _STEPS))
"""Ranks of each attempt, and the last step that it trains."""


def _attempt(world: World, place: Path, until: int, *arguments: str) -> int:
    """Train with one rank for each instance, up to a step."""
    (place / "hold").write_text(str(until))
    options = {
        "steps": _STEPS,
        "batch_size": _BATCH,
        "sequence_length": _LENGTH,
        "data": place.parent / "corpus",
        "seed": 5,
        "precision": "fp32",
        "checkpoint_dir": place / "checkpoints",
        "model_dir": place / "model",
        "metrics_file": place / "metrics",
        "samples_file": place / "samples",
        "hold_file": place / "hold",
    }
    texts = [f"--{name}={value}" for name, value in options.items()]
    env = {"TRAINMASTER_WIDTHS": "1 2 4"}
    stop = StopWhen(lambda: until < _STEPS and _newest(place) >= until)
    return run_in(replace(world, ranks_per_host=1), read_config([*texts, *arguments], env), env, stop)


def _lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _newest(place: Path) -> int:
    return max((int(str(line["step"])) for line in _lines(place / "metrics")), default=0)


def _losses(place: Path) -> list[tuple[object, float]]:
    return [(line["step"], float.fromhex(str(line["loss_hex"]))) for line in _lines(place / "metrics")]


@pytest.mark.thorough
@pytest.mark.parametrize("options", [(), ("--strategy=no_shard", "--gradient_accumulation_steps=1")], ids=str)
def test_R5_two_four_one_and_two_ranks_train_as_one_undisturbed_does(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    written(tmp_path / "corpus", [token % 251 for token in range(_SEQUENCES * _LENGTH + 1)], shard_tokens=500)
    alone, moved = tmp_path / "alone", tmp_path / "moved"
    for place in (alone, moved):
        place.mkdir()
    assert in_world(1, _attempt, alone, _STEPS, *options) == [0]
    for ranks, until in _LIVES:
        ended = in_world(ranks, _attempt, moved, until, *options)
        assert ended == [0 if until == _STEPS else 143] * ranks

    expected = _losses(alone)
    assert [step for step, _ in _losses(moved)] == [step for step, _ in expected] == [*range(1, _STEPS + 1)]
    apart = [abs(loss - other) for (_, loss), (_, other) in zip(_losses(moved), expected, strict=True)]
    assert max(apart) <= 1e-6

    seen: dict[int, Counter[int]] = {}
    for line in _lines(moved / "samples"):
        epoch = (int(str(line["step"])) - 1) * _BATCH // _SEQUENCES
        assert isinstance(line["samples"], list)
        seen.setdefault(epoch, Counter()).update(line["samples"])
    assert seen == {epoch: Counter(range(_SEQUENCES)) for epoch in range(3)}

    results = json.loads((moved / "model/metrics.json").read_text())
    assert {entry["width"]: entry["steps"] for entry in results["widths"]} == {1: 3, 2: 6, 4: 3}
    assert [line["width"] for line in _lines(moved / "metrics")] == [2] * 3 + [4] * 3 + [1] * 3 + [2] * 3


def _refused(world: World, place: Path) -> str:
    env = {"TRAINMASTER_WIDTHS": "1-4"}
    options = ("--batch_size=4", f"--checkpoint_dir={place}", f"--model_dir={place}")
    try:
        run_in(replace(world, ranks_per_host=1), read_config(options, env), env, StopRequest())
    except ConfigError as error:
        return str(error)
    raise AssertionError


def test_R4_a_width_that_does_not_divide_ends_before_anything_is_made(tmp_path: Path) -> None:
    refusal = (
        "hyperparameters: batch_size 4 does not divide by 3 ranks of width 3; take 3 or 6; "
        "widths of this job that do: 1, 2 or 4"
    )
    assert in_world(3, _refused, tmp_path / "job") == [refusal] * 3
    assert not (tmp_path / "job").exists()
