"""A loop with Accelerate that is stopped anywhere: the next attempt goes on as if it had not been."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, WeightedRandomSampler

from tests.integration.training.accelerate_runs import accelerate_training
from tests.integration.training.stops import Stop, Training, attempt, lines_of_two_attempts
from tests.integration.training.sums import StreamOfSums, Sums
from training.preemptible.adapters.carried import read_carried

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]

EPOCH = 7
"""Batches of 26 samples by 4."""


def _shuffled(_data: Dataset[Any]) -> dict[str, Any]:
    return {"shuffle": True}


def _weighted(_data: Dataset[Any]) -> dict[str, Any]:
    return {"sampler": WeightedRandomSampler([1.0 + index for index in range(26)], 26)}


def _with_workers(_data: Dataset[Any]) -> dict[str, Any]:
    return {"shuffle": True, "num_workers": 1, "persistent_workers": True}


def _equals_undisturbed(training: Training, folder: Path, *stops: Stop) -> None:
    code, undisturbed = attempt(training, folder / "undisturbed")
    assert code == 0
    for stop in stops:
        assert lines_of_two_attempts(training, folder / str(stop), stop) == undisturbed.lines, stop


@pytest.mark.parametrize("at", [5, EPOCH, EPOCH + 4])
def test_C26_a_stream_trains_stops_and_resumes_equal(at: int, tmp_path: Path) -> None:
    _equals_undisturbed(accelerate_training(StreamOfSums(26, noisy=True)), tmp_path, Stop(kind="step", at=at))


def test_S2_a_stream_under_accumulation_resumes_in_its_pass(tmp_path: Path) -> None:
    training = accelerate_training(StreamOfSums(26), accumulated=2, steps=9)
    _equals_undisturbed(training, tmp_path, Stop(kind="step", at=4), Stop(kind="step", at=6))


@pytest.mark.parametrize("loader", [_shuffled, _weighted, _with_workers])
def test_C34_an_order_without_a_seed_goes_on_in_the_second_epoch(loader: Any, tmp_path: Path) -> None:
    training = accelerate_training(Sums(26, noisy=True), loader=loader)
    _equals_undisturbed(training, tmp_path, Stop(kind="step", at=EPOCH), Stop(kind="step", at=EPOCH + 4))


def test_S4_an_evaluation_that_is_due_at_the_stop_is_made_up_first(tmp_path: Path) -> None:
    training = accelerate_training(Sums(26), loader=_shuffled, evaluate_every=3)
    _equals_undisturbed(training, tmp_path, Stop(kind="step", at=3), Stop(kind="step", at=4))


def test_S5_a_stop_in_an_evaluation_leaves_it_after_the_batch_and_loses_no_step(tmp_path: Path) -> None:
    training = accelerate_training(Sums(26), loader=_shuffled, evaluate_every=3, accumulated=2)
    code, first = attempt(training, tmp_path / "one", Stop(kind="evaluation", at=4))  # of three a time
    assert (code, first.batches) == (143, 4)
    assert first.lines[-1][:2] == ("loss", 6)
    assert (tmp_path / "one/step-00000006/whole.json").is_file()
    for at in (1, 3, 5):
        _equals_undisturbed(training, tmp_path / str(at), Stop(kind="evaluation", at=at))


def test_S5_a_stop_while_it_is_made_up_leaves_it_due(tmp_path: Path) -> None:
    training = accelerate_training(Sums(26), loader=_shuffled, evaluate_every=3)
    undisturbed = attempt(training, tmp_path / "undisturbed")[1]
    first = attempt(training, tmp_path / "stopped", Stop(kind="evaluation", at=2))[1]
    code, again = attempt(training, tmp_path / "stopped", Stop(kind="evaluation", at=1))
    assert (code, again.lines) == (143, [])
    assert first.lines + attempt(training, tmp_path / "stopped")[1].lines == undisturbed.lines


def test_S7_an_order_that_no_seed_decides_is_refused_in_words(tmp_path: Path) -> None:
    class Own:
        """A sampler with random numbers of its own, other ones in each attempt."""

        attempts = 0

        def __init__(self) -> None:
            Own.attempts += 1
            self.numbers = torch.Generator().manual_seed(Own.attempts)

        def __iter__(self) -> Any:
            return iter(torch.randperm(26, generator=self.numbers).tolist())

        def __len__(self) -> int:
            return 26

    training = accelerate_training(Sums(26), loader=lambda _data: {"sampler": Own()})
    assert attempt(training, tmp_path, Stop(kind="step", at=4))[0] == 143
    with pytest.raises(ValueError, match=r"the first 4 batches of this epoch are not those.*set_epoch"):
        attempt(training, tmp_path)


def test_S2_another_number_of_workers_is_refused_for_a_stream(tmp_path: Path) -> None:
    stop = Stop(kind="step", at=2)
    assert attempt(accelerate_training(StreamOfSums(26)), tmp_path, stop)[0] == 143
    training = accelerate_training(StreamOfSums(26), loader=lambda _data: {"num_workers": 1})
    with pytest.raises(ValueError, match="num_workers=1, the one before had 0"):
        attempt(training, tmp_path)


def test_a_checkpoint_without_what_is_carried_resumes_by_its_step(tmp_path: Path) -> None:
    """An earlier adapter wrote it."""
    training = accelerate_training(Sums(26), loader=_shuffled, is_seeded=True)
    undisturbed = attempt(training, tmp_path / "undisturbed")[1]
    folder = tmp_path / "stopped"
    first = attempt(training, folder, Stop(kind="step", at=EPOCH + 2))[1]
    checkpoint = folder / f"step-{EPOCH + 2:08}"
    (checkpoint / "carried-0.pt").unlink()
    (checkpoint / "whole.json").unlink()
    assert read_carried(checkpoint) is None
    (folder / "status.json").unlink()  # its checkpoints are taken as they are
    assert first.lines + attempt(training, folder)[1].lines == undisturbed.lines


def test_a_loader_without_a_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gave no batch in a whole epoch"):
        attempt(accelerate_training(Sums(0)), tmp_path)
