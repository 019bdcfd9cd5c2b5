import math
import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "200"))


def batch_at(step):
    inputs = torch.randn(64, 16, generator=torch.Generator().manual_seed(step))
    return inputs, inputs.sum(1, keepdim=True)


def main():
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * (1 + math.cos(math.pi * step / STEPS))
        inputs, targets = batch_at(step)
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step={step} loss={loss.item()!r}", flush=True)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
