import torch
from training.config import TrainConfig
from training.models.init import initialise
from training.models.transformer import Transformer
from training.optim import clip, make_optimizer, step_if_finite
from training.parallel.sharding import allocate, begin_part, shard


def train(config: TrainConfig, world, steps):
    with torch.device("meta"):
        model = Transformer(config.shape)
    shard(model, world=world, config=config)
    allocate(model, world=world, config=config)
    initialise(model, seed=config.seed, layers=config.shape.layers)
    optimizer = make_optimizer(model, config)
    for parts in steps:
        for number, loss_of in enumerate(parts, start=1):
            begin_part(model, is_last=number == len(parts), strategy=config.strategy)
            loss_of(model).backward()
        step_if_finite(optimizer, clip(model, config.grad_clip))
        optimizer.zero_grad()
    return model
