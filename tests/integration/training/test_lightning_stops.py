"""Lightning's Trainer, stopped anywhere: the next attempt goes on as if it had not been."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, ReduceLROnPlateau
from torch.utils.data import DataLoader

from tests.integration.training.lightning_runs import lightning_training
from tests.integration.training.stops import Stop, Training, attempt, lines_of_two_attempts
from tests.integration.training.sums import StreamOfSums, Sums

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]

EPOCH = 7
"""Batches of 26 samples by 4; a validation has 3."""


def _plateau(optimizer: torch.optim.Optimizer, _trainer: Any) -> Any:
    return {"scheduler": ReduceLROnPlateau(optimizer, patience=0, threshold=0.2), "monitor": "val"}


def _plateau_by_step(optimizer: torch.optim.Optimizer, _trainer: Any) -> Any:
    rates = ReduceLROnPlateau(optimizer, patience=3, threshold=0.2)
    return {"scheduler": rates, "monitor": "val", "interval": "step", "strict": False}


def _plateau_of_training(optimizer: torch.optim.Optimizer, _trainer: Any) -> Any:
    return {"scheduler": ReduceLROnPlateau(optimizer, patience=0, threshold=0.2), "monitor": "train_epoch"}


def _cosine(optimizer: torch.optim.Optimizer, trainer: Any) -> Any:
    return {
        "scheduler": CosineAnnealingLR(optimizer, trainer.estimated_stepping_batches),
        "interval": "step",
    }


def _by_epoch(optimizer: torch.optim.Optimizer, _trainer: Any) -> Any:
    return ExponentialLR(optimizer, 0.5)


def _patient(folder: Path) -> list[Any]:
    best = ModelCheckpoint(folder / "best", monitor="val", save_top_k=2, save_last=True)
    return [EarlyStopping("val", patience=2, mode="min"), best]


def _patient_with_training(folder: Path) -> list[Any]:
    return [EarlyStopping("train_epoch", patience=1, mode="min", min_delta=0.5)]


def _in_step(*steps: int) -> list[Stop]:
    return [Stop(kind="step", at=step) for step in steps]


def _in_validation(*batches: int) -> list[Stop]:
    return [Stop(kind="evaluation", at=batch) for batch in batches]


def _equals_undisturbed(training: Training, folder: Path, *stops: Stop) -> None:
    code, undisturbed = attempt(training, folder / "undisturbed")
    assert code == 0
    for stop in stops:
        assert lines_of_two_attempts(training, folder / str(stop), stop) == undisturbed.lines, stop


@pytest.mark.parametrize(
    "options", [{}, {"limit_train_batches": 5}, {"val_check_interval": 3}, {"loader": DataLoader}]
)
def test_C25_a_stream_trains_stops_and_resumes_equal(options: dict[str, Any], tmp_path: Path) -> None:
    stops = _in_step(3, 5, EPOCH, EPOCH + 2)
    _equals_undisturbed(lightning_training(StreamOfSums(26, noisy=True), **options), tmp_path, *stops)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"limit_train_batches": 4, "rates": _plateau}, id="batches"),
        pytest.param({"limit_train_batches": 0.5, "limit_val_batches": 2, "rates": _by_epoch}, id="a share"),
        pytest.param({"limit_train_batches": 4, "accumulate_grad_batches": 3, "max_steps": 8}, id="odd"),
    ],
)
def test_C27_S3_an_epoch_that_is_left_early_ends_as_it_would(options: dict[str, Any], tmp_path: Path) -> None:
    _equals_undisturbed(lightning_training(Sums(26), **options), tmp_path, *_in_step(3, 4, 6, 8))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"rates": _plateau, "watchers": _patient}, id="patience and best checkpoints"),
        pytest.param({"rates": _cosine}, id="a rate by step"),
        pytest.param({"rates": _plateau_of_training, "watchers": _patient_with_training}, id="epoch means"),
        pytest.param({"loader": DataLoader}, id="a plain DataLoader"),
        pytest.param({"reload_dataloaders_every_n_epochs": 1}, id="loaders made anew"),
        pytest.param({"check_val_every_n_epoch": 2}, id="a validation every second epoch"),
    ],
)
def test_C30_a_stop_at_the_end_of_an_epoch_is_not_seen_afterwards(
    options: dict[str, Any], tmp_path: Path
) -> None:
    training = lightning_training(Sums(26, noisy=True), max_epochs=4, **{"max_steps": -1, **options})
    _equals_undisturbed(training, tmp_path, *_in_step(EPOCH, 2 * EPOCH, EPOCH + 1))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"val_check_interval": 3, "rates": _plateau_by_step}, id="within an epoch"),
        pytest.param({"check_val_every_n_epoch": None, "val_check_interval": 5}, id="across epochs"),
        pytest.param({"num_sanity_val_steps": 2, "rates": _plateau}, id="after a sanity check"),
    ],
)
def test_S4_a_validation_that_is_due_at_the_stop_is_made_first(
    options: dict[str, Any], tmp_path: Path
) -> None:
    _equals_undisturbed(lightning_training(Sums(26), **options), tmp_path, *_in_step(3, 5, EPOCH))


def test_S5_a_stop_in_a_validation_leaves_it_after_the_batch_and_loses_no_step(tmp_path: Path) -> None:
    training = lightning_training(Sums(26), rates=_plateau, watchers=_patient, max_epochs=3, max_steps=-1)
    code, first = attempt(training, tmp_path / "one", *_in_validation(1))
    assert (code, first.batches, first.lines[-1][:2]) == (143, 1, ("loss", EPOCH))
    assert (tmp_path / f"one/preemption/step-{EPOCH:08}/whole.json").is_file()
    _equals_undisturbed(training, tmp_path, *_in_validation(1, 2, 3, 5))


def test_S5_a_validation_between_the_batches_of_one_step_keeps_its_gradients(tmp_path: Path) -> None:
    training = lightning_training(Sums(26), accumulate_grad_batches=2, val_check_interval=3, max_steps=8)
    _equals_undisturbed(training, tmp_path, *_in_validation(1, 2, 5, 8))


def test_S5_a_stop_in_the_sanity_check_leaves_at_once(tmp_path: Path) -> None:
    class Sent(EarlyStopping):  # type: ignore[misc]  # the library's types are not followed
        def on_validation_batch_start(self, trainer: Any, *_: Any) -> None:
            if trainer.sanity_checking:
                os.kill(os.getpid(), signal.SIGTERM)

    training = lightning_training(
        Sums(26), num_sanity_val_steps=2, watchers=lambda _folder: [Sent("val", patience=9)]
    )
    code, said = attempt(training, tmp_path)
    assert (code, said.lines) == (143, [])


def test_a_second_stop_is_none_too_many(tmp_path: Path) -> None:
    training = lightning_training(Sums(26, noisy=True), val_check_interval=3, rates=_plateau_by_step)
    undisturbed = attempt(training, tmp_path / "undisturbed")[1]
    lines = []
    for stop in (*_in_step(3), *_in_validation(1), *_in_step(8), *_in_validation(3)):
        code, said = attempt(training, tmp_path / "stopped", stop)
        assert code == 143
        lines += said.lines
    assert lines + attempt(training, tmp_path / "stopped")[1].lines == undisturbed.lines
