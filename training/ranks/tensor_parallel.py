"""Divides matrices among ranks that work on the same sequences, and the tokens between the matrices.

By torch's own styles: queries, keys, values, gate and up by their outputs, what follows them by its inputs.
So a block gathers its tokens twice and scatters them twice, in each pass. Norms and the residual stream have
a part of the tokens on each rank (sequence parallel), embedding and head a part of the vocabulary. Sources:
Shoeybi et al., Megatron-LM, arXiv 1909.08053; Korthikanti et al., Reducing Activation Recomputation in Large
Transformer Models, arXiv 2205.05198; torchtitan, models/llama3.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_module
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from training.model import Transformer
from training.models.decoder_shape import ModelShape

_TOKENS, _HEADS = 1, 1
"""Dimensions: of (batch, tokens, width), and of (batch, heads, tokens, width)."""


def divide(model: Transformer, mesh: DeviceMesh) -> None:
    """Make every parameter a DTensor of this mesh of one dimension, in place; FSDP divides it again later."""
    # It advises another mesh, for the few times that a whole matrix is gathered: by Muon and by an export.
    logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)
    parallelize_module(model, mesh, _root_plan())
    for block in model.blocks.values():
        parallelize_module(block, mesh, _block_plan(model.shape, ranks=mesh.size()))
    if model.shape.tied_head:
        model.head.weight = model.embedding.weight  # each became a parameter of its own


def _root_plan() -> dict[str, ParallelStyle]:
    return {
        "embedding": _Embedding(input_layouts=Replicate(), output_layouts=Shard(_TOKENS)),
        "norm": SequenceParallel(),
        "head": _Vocabulary(input_layouts=Shard(_TOKENS)),
    }


def _block_plan(shape: ModelShape, *, ranks: int) -> dict[str, ParallelStyle]:
    keys = ColwiseParallel if shape.kv_heads >= ranks else partial(_SharedHeads, heads=shape.kv_heads)
    plan: dict[str, ParallelStyle] = {
        "attention_norm": SequenceParallel(),
        "attention": _gathered_input(others=3),
        "attention.query": ColwiseParallel(),
        "attention.key": keys(),
        "attention.value": keys(),
        "attention.output": RowwiseParallel(output_layouts=Shard(_TOKENS)),
        "feed_forward_norm": SequenceParallel(),
        "feed_forward": _gathered_input(others=0),
        "feed_forward.gate": ColwiseParallel(),
        "feed_forward.up": ColwiseParallel(),
        "feed_forward.output": RowwiseParallel(output_layouts=Shard(_TOKENS)),
    }
    if shape.head_norms:
        # Not tokens but heads are divided there; for a norm that is the same.
        norms = ("attention.query_norm", "attention.key_norm")
        plan |= {name: SequenceParallel(sequence_dim=_HEADS, use_local_output=True) for name in norms}
    return plan


def _gathered_input(*, others: int) -> PrepareModuleInput:
    """All tokens of the first input; the others stay as they are."""
    rest = (None,) * others
    return PrepareModuleInput(
        input_layouts=(Shard(_TOKENS), *rest), desired_input_layouts=(Replicate(), *rest)
    )


class _Embedding(RowwiseParallel):
    """Waits for its output: a compiled block gives no gradient to a tensor that is still on its way."""

    @staticmethod
    def _prepare_output_fn(
        layouts: Sequence[Placement], _local: object, _module: nn.Module, outputs: DTensor, _mesh: DeviceMesh
    ) -> Tensor:
        return outputs.redistribute(placements=layouts).to_local().clone()  # FSDP warns of a view


class _Vocabulary(ColwiseParallel):
    """Logits stay divided by words; terms of the loss, which the head may give instead, are already whole."""

    @staticmethod
    def _prepare_output_fn(
        _layouts: object, _local: object, _module: nn.Module, outputs: Tensor, _mesh: DeviceMesh
    ) -> Tensor:
        return outputs


class _SharedHeads(ParallelStyle):
    """Of a matrix with fewer heads than ranks, which each rank has whole: the output of one head on each."""

    def __init__(self, *, heads: int) -> None:
        super().__init__()
        self._heads = heads

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        return distribute_module(module, device_mesh, output_fn=self._own_head)  # type: ignore[arg-type]  # torch's None

    def _own_head(self, _module: nn.Module, outputs: Any, mesh: DeviceMesh) -> Tensor:  # noqa: ANN401  torch's
        assert isinstance(outputs, DTensor)
        # Each rank's gradient is that of its own queries; together they are the matrix's.
        local = outputs.to_local(grad_placements=[Partial()])
        head = mesh.get_local_rank() * self._heads // mesh.size()
        return local.chunk(self._heads, dim=-1)[head]
