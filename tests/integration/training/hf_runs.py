"""Hugging Face's Trainer with its adapter, as many settings have it."""

import os
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.utils.data import Dataset
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments

from tests.integration.training.stops import Said, Training
from tests.integration.training.sums import Sums, small_model, weight_of
from training.preemptible.adapters.hf_trainer import PreemptionCallback, newest_whole

_OPTIONS: dict[str, Any] = {
    "per_device_train_batch_size": 4,
    "per_device_eval_batch_size": 4,
    "logging_steps": 1,
    "use_cpu": True,
    "report_to": "none",
    "disable_tqdm": True,
    "max_steps": 16,
    "save_steps": 6,
    "eval_strategy": "steps",
    "eval_steps": 3,
    "learning_rate": 1e-2,
    "save_total_limit": 3,
}


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small_model()

    def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        outputs = self.net(inputs)
        return {"loss": (outputs - labels).square().mean(), "logits": outputs}


class Says(TrainerCallback):  # type: ignore[misc]  # the library's types are not followed
    def __init__(self, said: Said) -> None:
        self.said = said

    def on_step_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        self.said.step(state.global_step + 1)

    def on_prediction_step(self, *_arguments: Any, **_: Any) -> None:
        torch.rand(1)  # an evaluation may draw, too
        self.said.batch_of_evaluation()

    def on_epoch_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        self.said.lines.append(("epoch", state.global_step))

    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, float], **_: Any) -> None:
        words = {name: value for name, value in logs.items() if name.endswith(("loss", "rate", "norm"))}
        self.said.lines.append((*sorted(words)[:1], state.global_step, words))

    def on_train_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        self.said.lines.append(("end", state.global_step, state.epoch, state.best_metric))


def _collated(samples: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {
        "inputs": torch.stack([sample[0] for sample in samples]),
        "labels": torch.stack([sample[1] for sample in samples]),
    }


def hf_training(
    data: Dataset[Any], *, patience: int = 0, evaluations: dict[str, int] | None = None, **options: Any
) -> Training:
    """``evaluations``: samples of each, by its name; None: one of 10. ``options``: TrainingArguments'."""

    def train(folder: Path, said: Said) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"
        transformers.logging.set_verbosity_error()
        torch.manual_seed(3)
        args = TrainingArguments(output_dir=str(folder), **{**_OPTIONS, **options})
        others = {name: Sums(count) for name, count in (evaluations or {}).items()}
        trainer = Trainer(
            model=Model(),
            args=args,
            data_collator=_collated,
            train_dataset=data,
            eval_dataset=others or Sums(10),
            callbacks=[
                PreemptionCallback(),
                Says(said),
                *([EarlyStoppingCallback(patience)] if patience else []),
            ],
        )
        trainer.train(resume_from_checkpoint=newest_whole(folder))
        best = trainer.state.best_model_checkpoint
        said.lines.append(("weights", weight_of(trainer.model), best and Path(best).name))

    return train
