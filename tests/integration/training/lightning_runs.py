"""Lightning's Trainer with its adapter, as many settings have it."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
import torch
import torchmetrics
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, Dataset

from tests.integration.training.stops import Said, Training
from tests.integration.training.sums import Sums, loss_of, small_model, weight_of
from training.preemptible.adapters.lightning_trainer import PreemptionCallback, ResumableLoader

Rates = Callable[[torch.optim.Optimizer, Any], Any]
"""A scheduler as ``configure_optimizers`` gives it, of an optimizer and a Trainer."""


class Model(lightning.LightningModule):  # type: ignore[misc]  # the library's types are not followed
    def __init__(self, said: Said, rates: Rates | None) -> None:
        super().__init__()
        self.said, self.rates, self.net = said, rates, small_model()
        self.mean = torchmetrics.MeanMetric()

    def training_step(self, batch: Any, _index: int) -> torch.Tensor:
        loss = loss_of(self.net, batch)
        self.log("train", loss, on_step=True, on_epoch=True)
        self.mean(loss.detach())
        self.log("mean", self.mean, on_step=False, on_epoch=True)
        number = self.trainer.fit_loop.total_batch_idx + 1
        self.said.lines.append(("loss", number, loss.item(), self.optimizers().param_groups[0]["lr"]))
        self.said.step(number)
        return loss

    def validation_step(self, batch: Any, _index: int) -> None:
        self.log("val", loss_of(self.net, batch) + torch.rand(1))  # it draws, too
        if not self.trainer.sanity_checking:
            self.said.batch_of_evaluation()

    def on_validation_end(self) -> None:
        if not self.trainer.sanity_checking:
            self.said.lines.append(("validated", self.trainer.fit_loop.total_batch_idx + 1, self._metrics()))

    def on_train_epoch_end(self) -> None:
        self.said.lines.append(("epoch", self.trainer.current_epoch))

    def on_train_end(self) -> None:
        self.said.lines.append(("end", self.global_step, weight_of(self.net), self._metrics()))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.net.parameters(), lr=3e-2)
        if self.rates is None:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": self.rates(optimizer, self.trainer)}

    def _metrics(self) -> dict[str, float]:
        return {name: value.item() for name, value in self.trainer.callback_metrics.items()}


def lightning_training(
    data: Dataset[Any],
    *,
    rates: Rates | None = None,
    watchers: Callable[[Path], list[Any]] = lambda _folder: [],
    loader: Callable[..., Any] = ResumableLoader,
    **options: Any,
) -> Training:
    """``watchers``: more callbacks, that may write below the folder; ``options``: Trainer's."""

    def train(folder: Path, said: Said) -> None:
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        lightning.seed_everything(3, verbose=False)
        ours, others = PreemptionCallback(str(folder / "preemption"), every_n_steps=5), watchers(folder)
        trainer = lightning.Trainer(
            callbacks=[ours, *others],
            accelerator="cpu",
            logger=False,
            enable_checkpointing=any(isinstance(other, ModelCheckpoint) for other in others),
            enable_progress_bar=False,
            enable_model_summary=False,
            **{"max_steps": 16, "num_sanity_val_steps": 0, **options},
        )
        texts = loader(data, batch_size=4, shuffle=isinstance(data, Sums))
        trainer.fit(Model(said, rates), texts, DataLoader(Sums(10), batch_size=4), ckpt_path=ours.newest)
        said.lines += [_of_watcher(other) for other in others]

    return train


def _of_watcher(watcher: Any) -> tuple[Any, ...]:
    if isinstance(watcher, EarlyStopping):
        return "patience", watcher.wait_count, float(watcher.best_score)
    best = [Path(path).name for path in watcher.best_k_models]
    saved = sorted(path.name for path in Path(watcher.dirpath).iterdir())
    return "checkpoints", Path(watcher.best_model_path).name, best, saved
