"""Make a plain model train on many ranks, from the outside: the model itself knows nothing of it.

The order of the steps matters: divide matrices, recompute, compile, shard. Sharding is FSDP2 in FSDP1's
words. Source: PyTorch documentation, torch.distributed.fsdp.fully_shard; torchtitan, docs/fsdp.md.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from training.config.choices import ActivationCheckpointing, Compile, Precision, ReduceDtype, Strategy
from training.config.sections import DivisionOptions
from training.models.transformer import Backbone, Transformer
from training.parallel.tensor_parallel import divide
from training.ranks.meshes import make_meshes
from training.ranks.world import World

Forward = Callable[..., Any]

_KEEPS_GATHERED = {Strategy.SHARD_GRAD_OP, Strategy.HYBRID_SHARD_ZERO2}
"""Strategies whose weights stay gathered from the forward to the backward pass."""
_DTYPES = {ReduceDtype.FP32: torch.float32, ReduceDtype.BF16: torch.bfloat16}
_ATEN = torch.ops.aten
_KEPT = [
    _ATEN.mm.default,
    _ATEN.addmm.default,
    _ATEN.bmm.default,
    _ATEN._scaled_mm.default,  # noqa: SLF001  of float8, with the largest value that its scale follows from
    _ATEN.max.default,
    _ATEN._scaled_dot_product_flash_attention.default,  # noqa: SLF001  torch's names of its kernels
    _ATEN._scaled_dot_product_cudnn_attention.default,  # noqa: SLF001
    _ATEN._scaled_dot_product_efficient_attention.default,  # noqa: SLF001
    _ATEN._scaled_dot_product_flash_attention_for_cpu.default,  # noqa: SLF001
]
"""Operations that are costly to compute again: nearly all of a block's arithmetic is in them."""


def shard(model: Backbone, *, world: World, config: DivisionOptions) -> None:
    """Make every parameter a DTensor, in place; a model on the meta device gets no memory by it.

    A rank alone that computes in the weights' own precision keeps a plain model: FSDP has nothing to gather,
    sum or cast there, and its copies and hooks would take an eighth of a short step.

    A precision ``auto`` that nobody has settled (``models.precision``) is computed as bf16.

    The embedding, each block, and the last norm with the head are gathered and reduced each by itself, so
    that one computes while the next is on its way. A head that is the embedding stays gathered with it.
    Neighbouring blocks are gathered together where the options want a least size of what is gathered.

    Raises:
        ConfigError: The ranks cannot be divided as the options say.
    """
    meshes = make_meshes(config, world)
    if config.precision is Precision.BF16_PURE:
        model.to(torch.bfloat16)
    if meshes.tensor is not None:
        divide(model, meshes.tensor)
    prepare(model.blocks.values(), recomputed=config.activation_checkpointing, compiled=config.compile)
    if not needs_fsdp(config, world):
        return
    sharding = Sharding.of(config, meshes.data)
    groups = grouped(list(model.blocks.values()), least=config.min_unit_params)
    blocks = [sharding.apply(*group) for group in groups]
    # The backward pass begins with the last unit: to give it up in between would gather it twice.
    if model.shape.tied_head:  # one parameter can be in one unit only
        units = [sharding.apply_kept(model.embedding, model.norm, model.head), *blocks]
    else:
        units = [sharding.apply(model.embedding), *blocks, sharding.apply_kept(model.norm, model.head)]
    sharding.apply(model)
    if sharding.gathers:
        gather_ahead(units, count=config.prefetch_blocks)


def grouped(blocks: Sequence[nn.Module], *, least: int) -> list[list[nn.Module]]:
    """Join neighbouring blocks until each group has so many parameters; the last one may have fewer."""
    groups: list[list[nn.Module]] = []
    size = 0
    for block in blocks:
        if groups and size < least:
            groups[-1].append(block)
        else:
            groups.append([block])
            size = 0
        size += sum(parameter.numel() for parameter in block.parameters())
    return groups


def needs_fsdp(config: DivisionOptions, world: World) -> bool:
    """Tell whether FSDP has something to gather, sum, cast or move for this rank."""
    return world.size > 1 or config.precision is not Precision.FP32 or config.cpu_offload


def allocate(model: Backbone, *, world: World, config: DivisionOptions) -> None:
    """Allocate the memory of a model that was sharded on the meta device; its weights are any numbers."""
    model.to_empty(device=torch.device("cpu") if config.cpu_offload else world.device)
    if isinstance(model, Transformer) and not isinstance(model, FSDPModule):
        model.tie()  # FSDP does so itself


def begin_part(model: nn.Module, *, is_last: bool, strategy: Strategy) -> None:
    """Prepare FSDP for the next part of a step; call it before each part's forward pass.

    Sharded gradients are divided among their ranks after each part: to put that off would need the memory
    of all gradients on every rank. Copies of the model add theirs up once, after the last part. Weights
    that stay gathered through a part stay so to the next.

    A step that is given up before its last part leaves its sums inside FSDP, so this model must not train
    on after that.

    Args:
        model: The sharded model.
        is_last: Whether it is the last part of the step.
        strategy: Strategy of the job.
    """
    if not isinstance(model, FSDPModule):
        return
    if strategy is Strategy.NO_SHARD:
        model.set_requires_gradient_sync(is_last)
    elif strategy.is_hybrid:
        model.set_requires_all_reduce(is_last)
    if strategy in _KEEPS_GATHERED:
        model.set_reshard_after_backward(is_last)


def prepare(blocks: Iterable[nn.Module], *, recomputed: ActivationCheckpointing, compiled: Compile) -> None:
    """Set up recomputing in the backward pass, and compiling, block by block, as blocks are alike.

    Call it before the blocks are sharded, so that gathering stays outside of both. It changes how a block's
    forward is called, not the block: parameters keep their names, from which first values and checkpoints
    follow.
    """
    for block in blocks:
        forward: Forward = block.forward
        if recomputed is not ActivationCheckpointing.NONE:
            forward = _recomputed(forward, recomputed)
        if compiled is not Compile.NONE:
            # One graph, or what falls out of it would be slow without a word.
            forward = torch.compile(forward, backend=compiled.value, fullgraph=True)
        block.forward = forward


def _recomputed(forward: Forward, kind: ActivationCheckpointing) -> Forward:
    options: dict[str, Any] = {"use_reentrant": False}
    if kind is ActivationCheckpointing.SELECTIVE:
        options["context_fn"] = partial(create_selective_checkpoint_contexts, _KEPT)

    def run(*inputs: Tensor) -> Tensor:
        return checkpoint(forward, *inputs, **options)  # type: ignore[no-any-return]

    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """One way of sharding, for all units of a model."""

    gathers: bool
    """Whether weights are divided and gathered; else each rank has a copy of them."""
    keeps_gathered: bool
    options: dict[str, Any]
    """Options of FSDP2's functions, ``fully_shard`` and ``replicate``."""

    @classmethod
    def of(cls, config: DivisionOptions, mesh: DeviceMesh) -> Self:
        return cls(
            gathers=config.strategy is not Strategy.NO_SHARD,
            keeps_gathered=config.strategy in _KEEPS_GATHERED,
            options={
                "mesh": mesh,
                "mp_policy": _precision_policy(config),
                "offload_policy": _offload_policy(config, mesh),
            },
        )

    def apply(self, *unit: nn.Module) -> FSDPModule:
        """Gather and reduce these modules' parameters together, except those of units within them."""
        return self._apply(unit, is_freed=not self.keeps_gathered)

    def apply_kept(self, *unit: nn.Module) -> FSDPModule:
        """Gather these modules together, always from the forward to the backward pass."""
        return self._apply(unit, is_freed=False)

    def _apply(self, unit: tuple[nn.Module, ...], *, is_freed: bool) -> FSDPModule:
        modules = unit[0] if len(unit) == 1 else list(unit)  # torch's functions take either
        if self.gathers:
            fully_shard(modules, reshard_after_forward=is_freed, **self.options)
        else:
            replicate(modules, **self.options)
        return _adding_up(unit[0])


def _adding_up(unit: nn.Module) -> FSDPModule:
    """Sum gradients instead of averaging them: the loss is already divided by the tokens of all ranks."""
    assert isinstance(unit, FSDPModule)
    unit.set_gradient_divide_factor(1.0)
    unit.set_force_sum_reduction_for_comms(enable=True)  # else a scaled sum, which gloo does not have
    return unit


def _precision_policy(config: DivisionOptions) -> MixedPrecisionPolicy:
    """Return the types of computing and reducing.

    Inputs are not cast: tokens are integers, and the rotary tables stay fp32.
    """
    if config.precision is Precision.FP32:
        return MixedPrecisionPolicy(cast_forward_inputs=False)
    return MixedPrecisionPolicy(
        param_dtype=torch.bfloat16, reduce_dtype=_DTYPES[config.reduce_dtype], cast_forward_inputs=False
    )


def _offload_policy(config: DivisionOptions, mesh: DeviceMesh) -> OffloadPolicy:
    if not config.cpu_offload:
        return OffloadPolicy()
    return CPUOffloadPolicy(pin_memory=mesh.device_type != "cpu")  # only an accelerator has use for it


def gather_ahead(units: Sequence[FSDPModule], *, count: int) -> None:
    """Gather weights while the units before them compute.

    In both passes, this many units ahead, for the memory of as many; 0 leaves it to FSDP. FSDP itself
    gathers one ahead in the backward pass. In the forward pass it issues the next gathering only when the
    host gets there, which is late where the host is slow.

    Args:
        units: Units in the order of the forward pass.
        count: Number of units that are gathered before they are needed.
    """
    if not count:
        return
    for place, unit in enumerate(units):
        unit.set_modules_to_forward_prefetch(list(units[place + 1 : place + 1 + count]))
        unit.set_modules_to_backward_prefetch(list(reversed(units[max(0, place - count) : place])))
