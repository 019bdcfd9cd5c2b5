"""Divide matrices among ranks that work on the same samples, and the tokens between the matrices.

It takes torch's own styles: queries, keys, values, gate and up are divided by their outputs, the matrices
that follow them by their inputs. So a block gathers its tokens twice and scatters them twice, in each pass.
Norms and the residual stream have a part of the tokens on each rank (sequence parallel); where the tokens of
an image do not divide, they have all of them, and each block sums twice instead. Embedding and head of texts
have a part of the vocabulary; of images, the embedding has a part of the width, and the last norm and the
head are whole. Sources: Shoeybi et al., Megatron-LM, arXiv 1909.08053; Korthikanti et al., Reducing
Activation Recomputation in Large Transformer Models, arXiv 2205.05198; torchtitan, models/llama3.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.utils.stateless import _reparametrize_module

from training.config.vision_shape import Shape, VisionShape
from training.models.transformer import Backbone, Transformer
from training.vision.vit import VisionTransformer

_TOKENS, _WIDTH, _HEADS = 1, 2, 1
"""Dimensions of (batch, tokens, width), and of (batch, heads, tokens, width)."""


def divide(model: Backbone, mesh: DeviceMesh) -> None:
    """Make every parameter a DTensor of this mesh of one dimension, in place; FSDP divides it again later."""
    # It advises another mesh, for the few times that a whole matrix is gathered: by Muon and by an export.
    logging.getLogger("torch.distributed.tensor._redistribute").setLevel(logging.ERROR)
    between = Shard(_TOKENS) if divides_tokens(model.shape, mesh.size()) else Replicate()
    for block in model.blocks.values():
        parallelize_module(block, mesh, _block_plan(model.shape, ranks=mesh.size(), between=between))
    if isinstance(model, VisionTransformer):
        parallelize_module(model, mesh, _image_plan(model, between))
        return
    assert isinstance(model, Transformer)
    parallelize_module(model, mesh, _text_plan())
    model.tie()  # each became a parameter of its own


def divides_tokens(shape: Shape, ranks: int) -> bool:
    """Tell whether ranks divide the tokens between matrices; texts that do not divide are refused before."""
    return not shape.sequence_length % ranks


def tokens_note(shape: Shape, ranks: int) -> str | None:
    """Return a line for the log about the tokens between matrices; None if there is nothing to say."""
    if ranks == 1 or not isinstance(shape, VisionShape):
        return None
    if divides_tokens(shape, ranks):
        return f"each of {ranks} ranks has a part of the {shape.sequence_length} tokens between matrices"
    reason = f"the {shape.sequence_length} tokens of an image do not divide by {ranks} ranks"
    return f"{reason}, so each has all of them between matrices"


def _text_plan() -> dict[str, ParallelStyle]:
    return {
        "embedding": _Embedding(input_layouts=Replicate(), output_layouts=Shard(_TOKENS)),
        "norm": SequenceParallel(),
        "head": _Vocabulary(input_layouts=Shard(_TOKENS)),
    }


def _image_plan(model: VisionTransformer, between: Placement) -> dict[str, ParallelStyle]:
    """Return the styles outside of blocks; norm and head see all tokens, as the model picks the head's."""
    plan: dict[str, ParallelStyle] = {
        "embedding": _ByWidth(output=between),
        "norm": _WholeUnit(),
        "head": _WholeUnit(),
    }
    if between.is_shard():
        plan[f"blocks.{list(model.blocks)[-1]}"] = _GatheredOutput()
    return plan


def _block_plan(shape: Shape, *, ranks: int, between: Placement) -> dict[str, ParallelStyle]:
    """Return the styles of a block's modules.

    Args:
        shape: Shape of the model.
        ranks: Number of ranks that divide matrices.
        between: Placement of tokens outside of the matrices.
    """
    norm = SequenceParallel if between.is_shard() else _Whole
    keys = ColwiseParallel if shape.kv_heads >= ranks else partial(_SharedHeads, heads=shape.kv_heads)
    plan: dict[str, ParallelStyle] = {
        "attention_norm": norm(),
        "attention": _gathered_input(between, others=3),
        "attention.query": ColwiseParallel(),
        "attention.key": keys(),
        "attention.value": keys(),
        "attention.output": RowwiseParallel(output_layouts=between),
        "feed_forward": _gathered_input(between, others=0),
        "feed_forward.up": ColwiseParallel(),
        "feed_forward.output": RowwiseParallel(output_layouts=between),
    }
    if shape.is_gated:
        plan["feed_forward.gate"] = ColwiseParallel()
    if not shape.is_parallel:
        plan["feed_forward_norm"] = norm()
    if shape.head_norms:
        # Not tokens but heads are divided there; for a norm that is the same.
        norms = ("attention.query_norm", "attention.key_norm")
        plan |= {name: SequenceParallel(sequence_dim=_HEADS, use_local_output=True) for name in norms}
    return plan


def _gathered_input(between: Placement, *, others: int) -> PrepareModuleInput:
    """Gather all tokens of the first input; the others stay as they are."""
    rest = (None,) * others
    return PrepareModuleInput(input_layouts=(between, *rest), desired_input_layouts=(Replicate(), *rest))


class _Embedding(RowwiseParallel):
    """Embedding that waits for its output: a compiled block gives no gradient to a tensor on its way."""

    @staticmethod
    def _prepare_output_fn(
        layouts: Sequence[Placement], _local: object, _module: nn.Module, outputs: DTensor, _mesh: DeviceMesh
    ) -> Tensor:
        return outputs.redistribute(placements=layouts).to_local().clone()  # FSDP warns of a view


class _Vocabulary(ColwiseParallel):
    """Head whose logits stay divided by words; terms of the loss, which it may return instead, are whole."""

    @staticmethod
    def _prepare_output_fn(
        _layouts: object, _local: object, _module: nn.Module, outputs: Tensor, _mesh: DeviceMesh
    ) -> Tensor:
        return outputs


class _SharedHeads(ParallelStyle):
    """Matrix with fewer heads than ranks: each rank has it whole, and takes the output of one head."""

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


class _Whole(ParallelStyle):
    """Module that every rank has whole, and computes the same with."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        made = distribute_module(module, device_mesh, input_fn=self._as_same)  # type: ignore[arg-type]  # torch's None
        made.register_forward_hook(self._as_local)
        return made

    @staticmethod
    def _as_same(_module: nn.Module, inputs: tuple[Tensor], mesh: DeviceMesh) -> DTensor:
        return DTensor.from_local(inputs[0], mesh, [Replicate()], run_check=False)

    @staticmethod
    def _as_local(_module: nn.Module, _inputs: object, outputs: DTensor) -> Tensor:
        return outputs.to_local()


class _WholeUnit(_Whole):
    """Whole module that FSDP gathers by itself: it gets a copy of the output, as FSDP warns of a view."""

    @staticmethod
    def _as_local(_module: nn.Module, _inputs: object, outputs: DTensor) -> Tensor:
        return outputs.to_local().clone()


class _GatheredOutput(ParallelStyle):
    """Block whose output is gathered from the tokens that each rank has of it."""

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        return distribute_module(module, device_mesh, output_fn=self._gathered)  # type: ignore[arg-type]  # torch's None

    @staticmethod
    def _gathered(_module: nn.Module, outputs: Tensor, mesh: DeviceMesh) -> Tensor:
        divided = DTensor.from_local(outputs, mesh, [Shard(_TOKENS)], run_check=False)
        return divided.redistribute(placements=[Replicate()]).to_local().clone()  # FSDP warns of a view


class _ByWidth(ParallelStyle):
    """Embedding of images: each rank computes its columns of all tokens, with plain tensors.

    So no weight of it is on two ranks, whose gradients could drift apart: a convolution's are not the same
    to the last bit each time on every GPU.
    """

    def __init__(self, *, output: Placement) -> None:
        super().__init__()
        self._output = output

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        distribute_module(module, device_mesh, _cut_by_width)
        forward = module.forward

        def run(*inputs: Tensor | None) -> Tensor:
            named = module.named_parameters()
            mine = {name: cut.to_local() for name, cut in named if isinstance(cut, DTensor)}
            with _reparametrize_module(module, mine):
                columns = forward(*inputs)
            whole = DTensor.from_local(columns, device_mesh, [Shard(_WIDTH)], run_check=False)
            tokens = whole.redistribute(placements=[Replicate()]).redistribute(placements=[self._output])
            return tokens.to_local().clone()  # FSDP warns of a view

        module.forward = run
        return module


def _cut_by_width(_name: str, module: nn.Module, mesh: DeviceMesh) -> None:
    """Divide the rows of a convolution, and the columns of the vectors that are added to tokens."""
    for name, parameter in list(module.named_parameters(recurse=False)):
        along = Shard(0 if isinstance(module, nn.Conv2d) else _WIDTH)
        cut = distribute_tensor(parameter, mesh, [along], src_data_rank=None)
        module.register_parameter(name, nn.Parameter(cut))
