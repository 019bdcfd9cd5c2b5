import math
import os

import torch
from torch import nn
from training.preemptible.agreement import Agreement
from training.preemptible.checkpoint import Checkpointer, open_store
from training.preemptible.preempt import EXIT_PREEMPTED, StopRequest

STEPS = int(os.environ.get("STEPS", "200"))


def batch_at(step):
    inputs = torch.randn(64, 16, generator=torch.Generator().manual_seed(step))
    return inputs, inputs.sum(1, keepdim=True)


def main(stop):
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    store = open_store(os.environ["SM_CHECKPOINT_DIR"], os.environ)
    checkpointer = Checkpointer(store, model=model, optimizer=optimizer, total_steps=STEPS)
    resumed = checkpointer.load_newest()
    agreement = Agreement(stop)
    for step in range(resumed.step + 1 if resumed else 1, STEPS + 1):
        torch.manual_seed(step)
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * (1 + math.cos(math.pi * step / STEPS))
        inputs, targets = batch_at(step)
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step={step} loss={loss.item()!r}", flush=True)
        if (decision := agreement.now()).stop:
            checkpointer.save_within(step, decision.seconds_left)
            checkpointer.end("preempted", step=step)
            raise SystemExit(EXIT_PREEMPTED)
        if step % 50 == 0:
            checkpointer.save(step)
    checkpointer.wait()
    checkpointer.end("completed", step=STEPS)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    with StopRequest() as stop:
        main(stop)
