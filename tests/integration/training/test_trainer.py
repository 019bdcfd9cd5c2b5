import torch

from training.config import TrainConfig
from training.data.batches import Batches
from training.data.corpus import SyntheticLanguage
from training.job import make_model
from training.optim import make_optimizer
from training.preempt import StopRequest
from training.preempt.agreement import Agreement
from training.trainer import Trainer
from training.world import World


def _trainer(world: World) -> Trainer:
    config = TrainConfig(seed=1, batch_size=2)
    model = make_model(config, world)
    return Trainer(
        config,
        world=world,
        model=model,
        optimizer=make_optimizer(model, config),
        batches=Batches(
            corpus=SyntheticLanguage(vocabulary=256, seed=1),
            sequence_length=config.shape.sequence_length,
            size=config.batch_size,
            rank=0,
            ranks=1,
            seed=1,
        ),
        agreement=Agreement(StopRequest()),
    )


def test_random_numbers_follow_from_the_step_not_from_what_ran_before(world: World) -> None:
    trainer = _trainer(world)
    drawn = []
    for step in (5, 6, 5):
        trainer.step(step)
        drawn.append(torch.rand(()).item())
    assert drawn[0] == drawn[2] != drawn[1]


def test_the_loss_begins_at_that_of_a_guess_and_falls(world: World) -> None:
    trainer = _trainer(world)
    losses = []
    for step in range(1, 9):
        trainer.step(step)
        losses.append(trainer.loss())
    assert abs(losses[0] - 5.55) < 0.1  # ln(256)
    assert losses[-1] < losses[0] - 0.5


def test_asking_twice_for_the_loss_gives_it_twice(world: World) -> None:
    trainer = _trainer(world)
    trainer.step(1)
    assert trainer.loss() == trainer.loss()
