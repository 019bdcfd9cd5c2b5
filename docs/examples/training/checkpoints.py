import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from training.preemptible.checkpoint import Checkpointer, open_store

STEPS = int(os.environ.get("STEPS", "20"))


def main() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    checkpointer = Checkpointer(
        open_store("checkpoints", os.environ),
        model=model,
        optimizer=optimizer,
        guard={"hidden": "16"},
        total_steps=STEPS,
    )
    resumed = checkpointer.load_newest()
    for step in range(resumed.step + 1 if resumed else 1, STEPS + 1):
        inputs = torch.randn(32, 8, generator=torch.Generator().manual_seed(step))
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            checkpointer.save(step, carried={"loss": loss.item()})
    checkpointer.wait()
    checkpointer.end("completed", step=STEPS)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
