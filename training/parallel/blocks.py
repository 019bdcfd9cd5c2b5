"""What is recomputed in the backward pass, and what is compiled: block by block, as blocks are alike.

Both change how a block's forward is called, not the block: its parameters keep their names, from which
first values and checkpoints follow.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from training.choices import ActivationCheckpointing, Compile

Forward = Callable[..., Any]

_ATEN = torch.ops.aten
_KEPT = [
    _ATEN.mm.default,
    _ATEN.addmm.default,
    _ATEN.bmm.default,
    _ATEN._scaled_dot_product_flash_attention.default,  # noqa: SLF001  torch's names of its kernels
    _ATEN._scaled_dot_product_cudnn_attention.default,  # noqa: SLF001
    _ATEN._scaled_dot_product_efficient_attention.default,  # noqa: SLF001
    _ATEN._scaled_dot_product_flash_attention_for_cpu.default,  # noqa: SLF001
]
"""Costly to compute again: nearly all of a block's operations are in them."""


def prepare(blocks: Iterable[nn.Module], *, recomputed: ActivationCheckpointing, compiled: Compile) -> None:
    """Before the blocks are sharded: the gathering stays outside of what is recomputed and compiled."""
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
