from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from training.choices import ActivationCheckpointing, Compile
from training.models.init import initialise
from training.models.llama import Transformer
from training.parallel.blocks import prepare
from training.presets import ModelShape

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
