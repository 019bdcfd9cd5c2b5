import os
import time

import lightning
import torch
from torch import nn
from torch.utils.data import Dataset
from training.preemptible.adapters.lightning_trainer import PreemptionCallback, ResumableLoader

CHECKPOINTS = os.environ.get("SM_CHECKPOINT_DIR", "checkpoints")  # launch.py sets it: /opt/ml/checkpoints
STEPS = int(os.environ.get("STEPS", "40"))
READ_SECONDS = float(os.environ.get("READ_SECONDS", "0"))  # as if the data came from a slow place


class Sums(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(READ_SECONDS / 4)
        inputs = torch.randn(16, generator=torch.Generator().manual_seed(index))
        return inputs, inputs.sum(0, keepdim=True)


class Adder(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 1))

    def training_step(self, batch, batch_idx):
        inputs, targets = batch
        loss = (self.layers(inputs) - targets).square().mean()
        print(f"step={self.global_step + 1} loss={loss.item()!r}", flush=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def main():
    torch.manual_seed(7)
    preemption = PreemptionCallback(CHECKPOINTS, every_n_steps=20)
    trainer = lightning.Trainer(
        max_steps=STEPS,
        callbacks=[preemption],
        enable_checkpointing=False,
        enable_progress_bar=False,
        logger=False,
    )
    loader = ResumableLoader(Sums(), batch_size=4, shuffle=True)
    trainer.fit(Adder(), loader, ckpt_path=preemption.newest)


if __name__ == "__main__":
    main()
