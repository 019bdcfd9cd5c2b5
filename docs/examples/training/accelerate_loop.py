import os
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset
from training.preemptible.adapters.accelerate_loop import PreemptibleLoop

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


def main():
    torch.manual_seed(7)
    accelerator = Accelerator()
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loader = DataLoader(Sums(), batch_size=4, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    loop = PreemptibleLoop(accelerator, CHECKPOINTS, steps=STEPS, save_every=20)
    for step, (inputs, targets) in loop.batches(loader):
        loss = (model(inputs) - targets).square().mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step={step} loss={loss.item()!r}", flush=True)


if __name__ == "__main__":
    main()
