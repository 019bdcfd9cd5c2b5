import os
import sys

import torch
from torch import nn
from training.preemptible.checkpoint import Checkpointer, open_store
from training.preemptible.preempt import EXIT_PREEMPTED, StopRequest
from training.preemptible.agreement import Agreement

STEPS = 200


def main(stop, checkpoint_dir):
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    store = open_store(checkpoint_dir, {})  # 1: resume from the newest checkpoint
    checkpointer = Checkpointer(store, model=model, optimizer=optimizer, total_steps=STEPS)
    resumed = checkpointer.load_newest()
    agreement = Agreement(stop)

    for step in range(resumed.step + 1 if resumed else 1, STEPS + 1):
        agreement.begin()  # 2: all ranks vote while the step is computed
        inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(step))
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step={step} loss={loss.item()}", flush=True)

        decision = agreement.settled()  # 3: asked to stop, save and leave
        if decision.stop:
            checkpointer.save_within(step, decision.seconds_left)
            checkpointer.end("preempted", step=step)
            return EXIT_PREEMPTED
        if step % 50 == 0:
            checkpointer.save(step)
    checkpointer.wait()
    checkpointer.end("completed", step=STEPS)
    return 0


if __name__ == "__main__":
    with StopRequest() as stop:  # 4: from here on SIGTERM is remembered
        sys.exit(main(stop, os.environ["SM_CHECKPOINT_DIR"]))  # launch.py sets it: /opt/ml/checkpoints
