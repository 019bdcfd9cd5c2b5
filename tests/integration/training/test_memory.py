"""All ranks are refused together, before memory is taken."""

import pytest
import torch

from tests.integration.training.worlds import in_world
from training.config import TrainConfig
from training.config.choices import Precision
from training.errors import DoesNotFitError
from training.models.transformer import Transformer
from training.parallel import memory
from training.parallel.memory import Memory, State, refuse_unless_it_fits
from training.parallel.sharding import shard
from training.ranks.world import World

pytestmark = pytest.mark.thorough


def on_meta(config: TrainConfig, world: World) -> Transformer:
    with torch.device("meta"):
        model = Transformer(config.text_shape)
    shard(model, world=world, config=config)
    return model


def refused(world: World, rooms: list[int | None]) -> str | None:
    """The message on each rank, where rank i has rooms[i] bytes."""
    memory.memory_of = lambda world: Memory(device=rooms[world.rank], host=None)
    config = TrainConfig()
    try:
        refuse_unless_it_fits(on_meta(config, world), config, world)
    except DoesNotFitError as error:
        return str(error)
    return None


TINY = 803_968 // 2 * 16
"""Bytes of state on each of two ranks: each parameter has an even number of rows."""


def test_every_rank_tells_of_the_one_that_is_worst_off() -> None:
    first, second = in_world(2, refused, [10 * TINY, TINY - 2**20])
    assert first == second
    assert first is not None
    assert "would fit: 3 ranks instead of 2; precision bf16_pure" in first


def test_a_model_that_just_fits_is_let_through() -> None:
    assert in_world(2, refused, [TINY, TINY]) == [None, None]
    assert None not in in_world(2, refused, [TINY, TINY - 1])
    assert in_world(2, refused, [TINY, None]) == [None, None]  # of which nobody knows


def test_the_state_is_counted_on_the_meta_device(world: World) -> None:
    state = State.of(on_meta(TrainConfig(), world), TrainConfig(), world)
    assert (state.elements, state.whole, state.bytes) == (803_968, 803_968, 803_968 * 16)
    pure = TrainConfig(precision=Precision.BF16_PURE)
    assert State.of(on_meta(pure, world), pure, world).bytes == 803_968 * 10


def test_70b_is_refused_on_this_machine_before_it_is_made(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "host_memory", lambda: 64 * 2**30)
    config = TrainConfig(preset="llama2-70b")
    with pytest.raises(DoesNotFitError) as caught:
        refuse_unless_it_fits(on_meta(config, world), config, world)
    assert str(caught.value) == (
        "weights, gradients and optimizer need 1027.8 GiB on each rank, which has 64.0 GiB (of the host,"
        " shared with its other ranks): 963.8 GiB too much; would fit: 17 ranks instead of 1"
    )
    assert len(str(caught.value)) <= 1024
