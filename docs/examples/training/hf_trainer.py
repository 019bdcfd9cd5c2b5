import os
import time

import torch
from torch.utils.data import Dataset
from training.preemptible.adapters.hf_trainer import PreemptionCallback, newest_whole
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

CHECKPOINTS = os.environ.get("SM_CHECKPOINT_DIR", "checkpoints")  # launch.py sets it: /opt/ml/checkpoints
STEPS = int(os.environ.get("STEPS", "40"))
READ_SECONDS = float(os.environ.get("READ_SECONDS", "0"))  # as if the data came from a slow place


class Sentences(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(READ_SECONDS / 4)
        start = torch.randint(256, (1,), generator=torch.Generator().manual_seed(index))
        tokens = (start + 3 * torch.arange(32)) % 256
        return {"input_ids": tokens, "labels": tokens}


class PrintLosses(TrainerCallback):
    def on_log(self, args, state, control, logs, **kwargs):
        if "loss" in logs:
            print(f"step={state.global_step} loss={logs['loss']!r}", flush=True)


def main():
    torch.manual_seed(7)
    shape = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    model = LlamaForCausalLM(LlamaConfig(**shape, num_attention_heads=4, attention_dropout=0.1))
    args = TrainingArguments(
        output_dir=CHECKPOINTS,
        max_steps=STEPS,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        logging_steps=1,
        save_steps=20,
        save_total_limit=2,
        use_cpu=not torch.cuda.is_available(),
        disable_tqdm=True,
        report_to="none",
    )
    callbacks = [PreemptionCallback(), PrintLosses()]
    trainer = Trainer(model=model, args=args, train_dataset=Sentences(), callbacks=callbacks)
    trainer.train(resume_from_checkpoint=newest_whole(CHECKPOINTS))
    trainer.save_model(os.environ.get("SM_MODEL_DIR", "model"))


if __name__ == "__main__":
    main()
