"""The search for the first value that is not finite, in a world of two ranks."""

import pytest
import torch

from tests.integration.training.worlds import in_world
from training.config import read_config
from training.data.batches import Batches
from training.data.corpus import SyntheticLanguage
from training.errors import FoundNotFiniteError
from training.job import make_model
from training.loop import Trainer
from training.monitoring.goodput import Meter
from training.monitoring.nonfinite import Hunt
from training.monitoring.report import Trace
from training.optim import make_optimizer
from training.preemptible.agreement import Agreement
from training.preemptible.preempt import StopRequest
from training.ranks.meshes import with_shares
from training.ranks.world import World

OPTIONS = {
    "batch_size": "8",
    "gradient_accumulation_steps": "2",
    "sequence_length": "16",
    "find_nonfinite": "true",
    "precision": "fp32",
}


def _trainer(world: World, options: dict[str, str]) -> Trainer:
    config = read_config([f"--{name}={text}" for name, text in options.items()], {})
    world = with_shares(world, config)
    model = make_model(config, world)
    batches = Batches(
        corpus=SyntheticLanguage(vocabulary=256, seed=1),
        sequence_length=16,
        size=8,
        rank=world.data_rank,
        ranks=world.data_ranks,
        seed=1,
    )
    hunt = Hunt.by(config, world=world, model=model, numbers=batches.numbers)
    return Trainer(
        config,
        world=world,
        model=model,
        optimizer=make_optimizer(model, config),
        batches=batches,
        agreement=Agreement(StopRequest()),
        meter=Meter(None),
        trace=Trace(config, world=world, env={}, hunt=hunt),
    )


def _spoil(where: str, trainer: Trainer, world: World) -> None:
    """In the second part of step 2 of rank 1, in its second row alone; a weight on all ranks."""
    calls = 0

    def forward(_module: object, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls != 4 or world.rank != 1:
            return output
        factor = torch.ones(output.shape[0], 1, 1)
        factor[1] = torch.inf if where == "output" else 1.0
        if where == "gradient":
            output.register_hook(lambda gradient: gradient * torch.tensor([1.0, torch.nan]).view(-1, 1, 1))
        return output * factor

    module = trainer.model.get_submodule("blocks.2.attention.output" if where == "output" else "blocks.1")
    if where == "weight":
        with torch.no_grad():
            next(iter(module.parameters())).mul_(torch.nan)
    else:
        module.register_forward_hook(forward, prepend=True)


def _found(world: World) -> dict[str, str]:
    found = {}
    for where in ("nothing", "output", "gradient", "weight"):
        trainer = _trainer(world, OPTIONS)
        if where != "nothing":
            _spoil(where, trainer, world)
        try:
            trainer.run(range(1, 4))
        except FoundNotFiniteError as error:
            found[where] = str(error)
    for name, options in (
        ("checkpointed", {"activation_checkpointing": "full"}),
        ("divided", {"strategy": "tp"}),
    ):
        trainer = _trainer(world, OPTIONS | options)
        _spoil("weight", trainer, world)
        try:
            trainer.run(range(1, 4))
        except FoundNotFiniteError as error:
            found[name] = str(error)
    _trainer(world, OPTIONS | {"strategy": "tp"}).run(range(1, 3))
    return found


@pytest.mark.thorough
def test_the_first_bad_value_is_found_with_its_module_rank_and_sample() -> None:
    first, second = in_world(2, _found)
    assert first == second, "every rank says the same"
    assert set(first) == {"output", "gradient", "weight", "checkpointed", "divided"}
    begins = "step 2: the first value that is not finite is the "
    # Of steps of 8 samples rank 1 has the last 4, and its second part the last 2: 20 to 23, 22 and 23.
    assert first["output"].startswith(begins + "output of blocks.2.attention.output, in samples 23 (rank 1)")
    gradient = "gradient of the output of blocks.1.feed_forward.output, in samples 23 (rank 1)"
    assert first["gradient"].startswith(begins + gradient)
    begins = (
        "step 1: the first value that is not finite is the output of blocks.1.attention_norm, in samples 8, 9"
    )
    assert first["weight"].startswith(f"{begins}; not finite before: weight (rank 0)")
    assert first["checkpointed"] == first["weight"]
    # Ranks that divide matrices have the same samples: all eight of the step, four in its first part.
    assert first["divided"].startswith(f"{begins}, 10, 11; not finite before: weight (rank 0)")
