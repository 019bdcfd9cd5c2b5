from collections import Counter
from dataclasses import dataclass, field
from typing import cast

import pytest
import torch
from torch.distributed.fsdp import FSDPModule
from torch.utils._python_dispatch import TorchDispatchMode

from training.config import TrainConfig
from training.config.choices import ActivationCheckpointing, Compile, Strategy
from training.config.decoder_shape import ModelShape
from training.errors import ConfigError
from training.models.init import initialise
from training.models.transformer import Transformer
from training.parallel.sharding import gather_ahead, prepare
from training.ranks.meshes import MeshShape, mesh_shape
from training.ranks.world import World

_SHAPE = ModelShape(layers=2, width=32, heads=4, kv_heads=4, hidden=64, vocabulary=50, sequence_length=16)
_TOKENS = torch.arange(32).view(2, 16)


def _model(recomputed: ActivationCheckpointing) -> Transformer:
    model = Transformer(_SHAPE)
    prepare(model.blocks.values(), recomputed=recomputed, compiled=Compile.NONE)
    initialise(model, seed=1, layers=2)
    return model


class _Calls(TorchDispatchMode):
    """How often each operation runs."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))


def _calls(recomputed: ActivationCheckpointing) -> tuple[int, int]:
    """Matrix products and attentions, forward and backward."""
    with _Calls() as calls:
        _model(recomputed)(_TOKENS).sum().backward()
    return calls.counts["mm"], calls.counts["_scaled_dot_product_flash_attention_for_cpu"]


def _kept_bytes(recomputed: ActivationCheckpointing) -> int:
    """What autograd keeps of the blocks; a selective one keeps its matrices elsewhere, which is not seen."""
    model = _model(recomputed)
    own = {one.untyped_storage().data_ptr() for one in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(_TOKENS)
    return sum(kept.values())


def test_full_recomputes_matrices_and_attention_and_selective_neither() -> None:
    # Two blocks of seven matrices, and the head; each has one product forward and two backward.
    assert _calls(ActivationCheckpointing.NONE) == (45, 2)
    assert _calls(ActivationCheckpointing.SELECTIVE) == (45, 2)
    # The last product of a block is not repeated: the backward pass has no use for its result.
    assert _calls(ActivationCheckpointing.FULL) == (45 + 2 * 6, 4)


def test_recomputed_blocks_keep_less() -> None:
    assert _kept_bytes(ActivationCheckpointing.FULL) < _kept_bytes(ActivationCheckpointing.NONE) / 3


def test_names_of_parameters_do_not_change() -> None:
    plain, recomputed = (
        [name for name, _ in _model(kind).named_parameters()]
        for kind in (ActivationCheckpointing.NONE, ActivationCheckpointing.FULL)
    )
    assert plain == recomputed


def _world(size: int, ranks_per_host: int) -> World:
    return World(rank=0, size=size, local_rank=0, ranks_per_host=ranks_per_host, device=torch.device("cpu"))


@pytest.mark.parametrize(
    ("strategy", "group", "expected"),
    [
        pytest.param("full_shard", 0, 32, id="full_shard divides a copy among all"),
        pytest.param("shard_grad_op", 0, 32, id="so does shard_grad_op"),
        pytest.param("hybrid_shard", 0, 8, id="hybrid_shard among the ranks of a host"),
        pytest.param("hybrid_shard_zero2", 16, 16, id="or of a group as large as asked"),
        pytest.param("hybrid_shard", 32, 32, id="which may be all"),
        pytest.param("no_shard", 0, 1, id="no_shard gives each rank a copy"),
    ],
)
def test_ranks_of_a_copy(strategy: str, group: int, expected: int) -> None:
    config = TrainConfig(strategy=Strategy(strategy), shard_group_size=group)
    assert mesh_shape(config, _world(32, 8)) == MeshShape(copies=32 // expected, shards=expected, tensor=1)


@pytest.mark.parametrize(
    ("size", "ranks_per_host", "group", "problem"),
    [
        pytest.param(32, 8, 12, "shard_group_size 12 does not divide 32 ranks", id="left over"),
        pytest.param(
            10,
            4,
            0,
            "shard_group_size 4 (the ranks of a host) does not divide 10 ranks",
            id="unlike hosts",
        ),
        pytest.param(
            4,
            1,
            0,
            "shard_group_size 1 (the ranks of a host) divides nothing: set another, or strategy "
            "full_shard or no_shard",
            id="hosts of one rank",
        ),
    ],
)
def test_groups_that_cannot_be_are_refused(size: int, ranks_per_host: int, group: int, problem: str) -> None:
    config = TrainConfig(strategy=Strategy.HYBRID_SHARD, shard_group_size=group)
    with pytest.raises(ConfigError) as caught:
        mesh_shape(config, _world(size, ranks_per_host))
    assert caught.value.problems == (problem,)


def test_one_rank_alone_needs_no_groups() -> None:
    alone = MeshShape(copies=1, shards=1, tensor=1)
    assert mesh_shape(TrainConfig(strategy=Strategy.HYBRID_SHARD), _world(1, 1)) == alone


@dataclass
class Unit:
    name: str
    ahead: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)

    def set_modules_to_forward_prefetch(self, units: "list[Unit]") -> None:
        self.ahead = [one.name for one in units]

    def set_modules_to_backward_prefetch(self, units: "list[Unit]") -> None:
        self.behind = [one.name for one in units]


def _prefetched(count: int) -> list[Unit]:
    units = [Unit(name) for name in "abcd"]
    gather_ahead([cast("FSDPModule", one) for one in units], count=count)
    return units


def test_each_unit_gathers_those_after_it_and_in_the_backward_pass_those_before_it() -> None:
    units = _prefetched(2)
    assert [one.ahead for one in units] == [["b", "c"], ["c", "d"], ["d"], []]
    assert [one.behind for one in units] == [[], ["a"], ["b", "a"], ["c", "b"]]


def test_none_leaves_the_order_to_fsdp() -> None:
    assert [(one.ahead, one.behind) for one in _prefetched(0)] == [([], [])] * 4
