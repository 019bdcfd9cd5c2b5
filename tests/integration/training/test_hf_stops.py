"""Hugging Face's Trainer, stopped anywhere: the next attempt goes on as if it had not been."""

from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import Dataset

from tests.integration.training.hf_runs import hf_training
from tests.integration.training.stops import Stop, Training, attempt, lines_of_two_attempts
from tests.integration.training.sums import StreamOfSums, Sums

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]

EPOCH = 7
"""Batches of 26 samples by 4; an evaluation has 3."""
PLATEAU: dict[str, Any] = {
    "lr_scheduler_type": "reduce_lr_on_plateau",
    "lr_scheduler_kwargs": {"patience": 0, "factor": 0.5, "threshold": 0.2},
    "metric_for_best_model": "eval_loss",
    "eval_steps": 4,
}
BY_EPOCH: dict[str, Any] = {
    "eval_strategy": "epoch",
    "save_strategy": "epoch",
    "num_train_epochs": 3,
    "max_steps": -1,
}
BEST: dict[str, Any] = {
    "eval_steps": 2,
    "save_steps": 2,
    "load_best_model_at_end": True,
    "metric_for_best_model": "eval_loss",
}


def _in_step(*steps: int) -> list[Stop]:
    return [Stop(kind="step", at=step) for step in steps]


def _in_evaluation(*batches: int) -> list[Stop]:
    return [Stop(kind="evaluation", at=batch) for batch in batches]


def _equals_undisturbed(training: Training, folder: Path, *stops: Stop) -> None:
    code, undisturbed = attempt(training, folder / "undisturbed")
    assert code == 0
    for stop in stops:
        assert lines_of_two_attempts(training, folder / str(stop), stop) == undisturbed.lines, stop


def test_C28_a_plateau_is_told_of_every_evaluation(tmp_path: Path) -> None:
    _equals_undisturbed(hf_training(Sums(26), **PLATEAU), tmp_path, *_in_step(4, 7, 8))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="dropout"),
        pytest.param({"gradient_accumulation_steps": 2, "max_steps": 10}, id="accumulation"),
        pytest.param({"logging_steps": 5, "eval_steps": 4}, id="means between log lines"),
        pytest.param({"eval_on_start": True, "patience": 3, "metric_for_best_model": "loss"}, id="at start"),
        pytest.param({"accelerator_config": {"use_seedable_sampler": False}}, id="no seed of the order"),
        pytest.param({"dataloader_num_workers": 1, "dataloader_persistent_workers": True}, id="workers"),
    ],
)
def test_C29_S4_an_evaluation_that_is_due_at_the_stop_is_made_first(
    options: dict[str, Any], tmp_path: Path
) -> None:
    _equals_undisturbed(hf_training(Sums(26, noisy=True), **options), tmp_path, *_in_step(3, 5, EPOCH, 8))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            {**BY_EPOCH, "logging_strategy": "epoch", "lr_scheduler_type": "cosine"}, id="all by epoch"
        ),
        pytest.param({**BY_EPOCH, "load_best_model_at_end": True}, id="the best by epoch"),
    ],
)
def test_S4_what_comes_at_the_end_of_an_epoch_comes(options: dict[str, Any], tmp_path: Path) -> None:
    stops = [*_in_step(EPOCH, EPOCH + 1, 3 * EPOCH), *_in_evaluation(2, 9)]
    _equals_undisturbed(hf_training(Sums(26), **options), tmp_path, *stops)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(BEST, id="the best of some"),
        pytest.param({**BEST, "learning_rate": 0.3, "patience": 2, "max_steps": 20}, id="patience"),
        pytest.param({**BEST, "save_strategy": "best"}, id="saved when best"),
    ],
)
def test_S4_the_best_and_the_patience_are_those_of_a_run_without_stops(
    options: dict[str, Any], tmp_path: Path
) -> None:
    _equals_undisturbed(hf_training(Sums(26), **options), tmp_path, *_in_step(2, 4, 5), *_in_evaluation(5, 8))


def test_C31_S5_a_stop_in_an_evaluation_leaves_it_after_the_batch_and_loses_no_step(tmp_path: Path) -> None:
    training = hf_training(Sums(26), **PLATEAU)
    code, first = attempt(training, tmp_path / "one", *_in_evaluation(1))
    assert (code, first.batches) == (143, 1)  # the adapter, called first, hears of it after the next
    assert (tmp_path / "one/checkpoint-4/whole.json").is_file()
    _equals_undisturbed(training, tmp_path, *_in_evaluation(1, 3, 5))


def test_S5_a_stop_in_the_second_of_two_evaluations_does_not_count_the_first_twice(tmp_path: Path) -> None:
    training = hf_training(
        Sums(26),
        evaluations={"a": 10, "b": 6},
        metric_for_best_model="a_loss",
        greater_is_better=False,
        patience=2,
    )
    undisturbed = attempt(training, tmp_path / "undisturbed")[1]
    stopped = lines_of_two_attempts(training, tmp_path / "stopped", *_in_evaluation(4))
    assert [line for at, line in enumerate(stopped) if line not in stopped[:at]] == undisturbed.lines


@pytest.mark.parametrize("options", [{}, {"gradient_accumulation_steps": 2, "max_steps": 9}])
def test_S2_a_stream_resumes_in_its_pass(options: dict[str, Any], tmp_path: Path) -> None:
    training = hf_training(StreamOfSums(26, noisy=True), **options)
    _equals_undisturbed(training, tmp_path, *_in_step(3, 5, EPOCH, 8))


def test_a_stop_in_the_last_step_leaves_nothing_to_train(tmp_path: Path) -> None:
    training = hf_training(Sums(26), max_steps=10, eval_steps=10)
    _equals_undisturbed(training, tmp_path, *_in_step(10), *_in_evaluation(1))


@pytest.mark.parametrize("data", [Sums(26), StreamOfSums(30)], ids=["a data set", "a stream"])
def test_S2_what_was_trained_to_its_end_can_be_trained_longer(data: Dataset[Any], tmp_path: Path) -> None:
    steady: dict[str, Any] = {"lr_scheduler_type": "constant", "eval_steps": 50}
    longer = attempt(hf_training(data, max_steps=16, **steady), tmp_path / "at once")[1]
    first = attempt(hf_training(data, max_steps=10, **steady), tmp_path / "twice")[1]
    second = attempt(hf_training(data, max_steps=16, **steady), tmp_path / "twice")[1]
    losses = [line for line in first.lines + second.lines if line[0] == "grad_norm"]
    assert losses == [line for line in longer.lines if line[0] == "grad_norm"]


@pytest.mark.parametrize("options", [{"per_device_train_batch_size": 8}, {"gradient_accumulation_steps": 2}])
def test_S6_another_global_batch_is_refused_in_words(options: dict[str, Any], tmp_path: Path) -> None:
    assert attempt(hf_training(Sums(26)), tmp_path, *_in_step(3))[0] == 143
    with pytest.raises(ValueError, match="this job began with 4 samples a step"):
        attempt(hf_training(Sums(26), **options), tmp_path)


def test_S6_the_same_global_batch_in_other_parts_goes_on_by_samples(tmp_path: Path) -> None:
    halves: dict[str, Any] = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    first = attempt(hf_training(Sums(24)), tmp_path, *_in_step(4))[1]
    code, second = attempt(hf_training(Sums(24), **halves), tmp_path)
    epochs = [line[1] for line in first.lines + second.lines if line[0] == "epoch"]
    assert (code, epochs) == (0, [6, 12, 16])
