"""A loop with Accelerate and its adapter, as many settings have it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import DataLoaderConfiguration, GradientAccumulationPlugin, set_seed
from torch.utils.data import DataLoader, Dataset

from tests.integration.training.stops import Said, Training
from tests.integration.training.sums import Sums, loss_of, small_model, weight_of
from training.preemptible.adapters.accelerate_loop import PreemptibleLoop


def accelerate_training(  # noqa: PLR0915  # one script
    data: Dataset[Any],
    *,
    steps: int = 16,
    accumulated: int = 1,
    evaluate_every: int = 0,
    is_seeded: bool = False,
    loader: Callable[[Dataset[Any]], dict[str, Any]] = lambda _data: {},
) -> Training:
    """``loader``: arguments of DataLoader beside data and batch size."""

    def train(folder: Path, said: Said) -> None:
        AcceleratorState._reset_state(reset_partial_state=True)
        GradientState._reset_state()
        set_seed(3)
        accelerator = Accelerator(
            cpu=True,
            dataloader_config=DataLoaderConfiguration(use_seedable_sampler=is_seeded),
            gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=accumulated),
        )
        model = small_model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
        rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.2)
        accelerator.register_for_checkpointing(plateau)
        texts = DataLoader(data, batch_size=4, **loader(data))
        others = DataLoader(Sums(10), batch_size=4)
        model, optimizer, texts, others, rates = accelerator.prepare(model, optimizer, texts, others, rates)

        def evaluate(step: int) -> None:
            total = 0.0
            for batch in loop.watched(others):
                total += loss_of(model, batch).item() + torch.rand(1).item()  # it draws, too
                said.batch_of_evaluation()
            plateau.step(total)
            said.lines.append(("evaluated", step, total))

        given = (evaluate_every, evaluate) if evaluate_every else None
        loop = PreemptibleLoop(accelerator, folder, steps=steps, save_every=5, evaluate=given)
        for step, batch in loop.batches(texts):
            with accelerator.accumulate(model):
                loss = loss_of(model, batch)
                accelerator.backward(loss)
                optimizer.step()
                rates.step()
                optimizer.zero_grad()
            said.lines.append(("loss", step, loss.item(), optimizer.param_groups[0]["lr"]))
            if accelerator.sync_gradients:
                said.step(step)
        said.lines.append(("end", steps, weight_of(model)))

    return train
