"""Trains with Hugging Face's Trainer as a case of demo-scripts has it: evaluations, a stream, ranks."""

import os
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

from training.preemptible.adapters.hf_trainer import PreemptionCallback, newest_whole

CHECKPOINTS = os.environ.get("SM_CHECKPOINT_DIR", "checkpoints")
STEPS, SAMPLES, BATCH = int(os.environ["STEPS"]), 64, 4
EVALUATE_EVERY = int(os.environ.get("EVALUATE_EVERY", "0"))
RANKS = int(os.environ.get("WORLD_SIZE", "1"))
GLOBAL_BATCH = int(os.environ["GLOBAL_BATCH"])


def sentence(index: int) -> dict[str, torch.Tensor]:
    """Make tokens of which the first is the sample's number."""
    tokens = (index + 3 * torch.arange(32)) % 256
    return {"input_ids": tokens, "labels": tokens}


class Sentences(Dataset[dict[str, torch.Tensor]]):
    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return sentence(index)


class Stream(IterableDataset[dict[str, torch.Tensor]]):
    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        return map(sentence, range(SAMPLES))


class ShownTrainer(Trainer):  # type: ignore[misc]  # the library's types are not followed
    def training_step(self, model: Any, inputs: Any, *rest: Any) -> Any:
        time.sleep(0)  # the gate of the demo is here
        seen = f"step={self.state.global_step + 1} samples={inputs['input_ids'][:, 0].tolist()}"
        print(f"{seen}\n", end="", flush=True)
        return super().training_step(model, inputs, *rest)


class Prints(TrainerCallback):  # type: ignore[misc]  # the library's types are not followed
    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, float], **_: Any) -> None:
        for kind, key in (("step", "loss"), ("evaluation", "eval_loss")):
            if state.is_world_process_zero and key in logs:
                print(f"{kind}={state.global_step} loss={logs[key]!r}\n", end="", flush=True)


def main() -> None:
    torch.manual_seed(7)
    shape = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    dropout = float(os.environ["DROPOUT"])
    model = LlamaForCausalLM(LlamaConfig(**shape, num_attention_heads=4, attention_dropout=dropout))
    args = TrainingArguments(
        output_dir=CHECKPOINTS,
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        gradient_accumulation_steps=GLOBAL_BATCH // (BATCH * RANKS),
        learning_rate=1e-3,
        logging_steps=1,
        save_steps=10,
        save_total_limit=2,
        eval_strategy="steps" if EVALUATE_EVERY else "no",
        eval_steps=EVALUATE_EVERY or None,
        use_cpu=True,
        disable_tqdm=True,
        report_to="none",
    )
    trainer = ShownTrainer(
        model=model,
        args=args,
        train_dataset=Stream() if os.environ.get("STREAM") else Sentences(),
        eval_dataset=[sentence(index) for index in range(SAMPLES, SAMPLES + 8)],
        callbacks=[PreemptionCallback(), Prints()],
    )
    trainer.train(resume_from_checkpoint=newest_whole(CHECKPOINTS))


if __name__ == "__main__":
    main()
