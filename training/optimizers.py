"""Optimizers that torch does not have."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer
from torch.optim.adamw import adamw
from torch.optim.optimizer import ParamsT

_CHUNK = 2**26
"""Elements that are added at once; bounds the temporary copy, which would be as large as the model."""
_STATE = ("exp_avg", "exp_avg_sq", "compensation")


def local_part(tensor: Tensor) -> Tensor:
    """What this rank holds of it; the same memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


class AnyPrecisionAdamW(Optimizer):
    """AdamW for weights that are bf16 themselves, without an fp32 copy of them.

    A bf16 number has 8 bits: an update below a 256th of a weight would be rounded away, and most are. Kahan's
    compensated sum keeps, beside each weight, what the last addition lost, and adds it next time; the pair
    has about 16 bits. (W. Kahan, Further remarks on reducing truncation errors, 1965. For AdamW: AnyPrecision
    of pytorch/torchdistx; Zamirai et al., Revisiting BFloat16 Training, arXiv 2010.06192.)

    A parameter takes 10 bytes: weight, gradient, two moments and the rest of the sum. AdamW in mixed
    precision takes 16.

    State as AdamW's, plus ``compensation``, all in the precision of the weight.

    The attribute ``found_inf``, where set to a tensor of 1, makes a step change nothing.
    """

    def __init__(
        self,
        params: ParamsT,
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.found_inf: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        assert closure is None, "the gradients are there already"
        for group in self.param_groups:
            parameters = [one for one in group["params"] if one.grad is not None]
            for one in parameters:
                if not self.state[one]:
                    self.state[one] = _first_state(one)
            for chunk in _chunks(parameters):
                self._update(chunk, group)

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        weights = [local_part(one) for one in parameters]
        rests = self._of(parameters, "compensation")
        # The fused kernel computes in fp32. It steps the rests, not the weights: the update joins what
        # earlier additions lost, before anything is rounded to the weights' precision.
        adamw(
            params=rests,
            grads=[local_part(one.grad) for one in parameters if one.grad is not None],
            exp_avgs=self._of(parameters, "exp_avg"),
            exp_avg_sqs=self._of(parameters, "exp_avg_sq"),
            max_exp_avg_sqs=[],
            state_steps=[self.state[one]["step"] for one in parameters],
            fused=True,
            found_inf=self.found_inf,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=0.0,
            eps=group["eps"],
            maximize=False,
        )
        # Of the weights' own type: else torch launches one kernel for each of them.
        share = 1.0 if self.found_inf is None else (1 - self.found_inf).to(weights[0])
        _decay(weights, rests, rate=share * (group["lr"] * group["weight_decay"]))
        _add_compensated(weights, rests, share=share)

    def _of(self, parameters: list[Tensor], name: str) -> list[Tensor]:
        return [local_part(self.state[one][name]) for one in parameters]


def _first_state(parameter: Tensor) -> dict[str, Tensor]:
    step = torch.zeros((), dtype=torch.float32, device=local_part(parameter).device)
    return {"step": step, **{name: torch.zeros_like(parameter) for name in _STATE}}


def _chunks(parameters: list[Tensor]) -> Iterator[list[Tensor]]:
    """In order, each of at most so many elements on this rank, or of one parameter."""
    chunk: list[Tensor] = []
    size = 0
    for one in parameters:
        elements = local_part(one).numel()
        if chunk and size + elements > _CHUNK:
            yield chunk
            chunk, size = [], 0
        chunk.append(one)
        size += elements
    if chunk:
        yield chunk


def _decay(weights: list[Tensor], rests: list[Tensor], *, rate: Tensor | float) -> None:
    """Into the rests too: a decay of a thousandth is below what a bf16 weight can show."""
    shrinkage = torch._foreach_mul(weights, rate)  # noqa: SLF001  torch's own names for lists
    torch._foreach_sub_(rests, shrinkage)


def _add_compensated(weights: list[Tensor], rests: list[Tensor], *, share: Tensor | float) -> None:
    """Kahan's sum: add the rests to the weights; what rounding lost becomes the new rests.

    With a share of 0 nothing changes. (Adding the rests again could move the last bit of the pair from one
    to the other.)
    """
    sums = torch._foreach_mul(rests, share)  # noqa: SLF001
    torch._foreach_add_(sums, weights)
    torch._foreach_sub_(weights, sums)
    torch._foreach_add_(rests, weights)
    torch._foreach_copy_(weights, sums)
