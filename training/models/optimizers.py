"""Optimizers that torch does not have."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.nn import functional as F
from torch.optim import Optimizer
from torch.optim.adamw import adamw
from torch.optim.optimizer import ParamsT

_CHUNK = 2**26
"""Elements that are added at once; bounds the temporary copy, which would be as large as the model."""
_STATE = ("exp_avg", "exp_avg_sq", "compensation")
_BLOCK = 256
_MATRIX = 2
"""Number of dimensions."""
_LEVELS = {"exp_avg": True, "exp_avg_sq": False}
"""The moments of a matrix, and whether they have a sign."""
_DECADES = 7


def local_part(tensor: Tensor) -> Tensor:
    """Return the part of a tensor that this rank holds, in the same memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


@dataclass(slots=True, kw_only=True)
class Moments:
    """Tensors of some parameters, as lists: one fused kernel steps them at once, computing in fp32."""

    weights: list[Tensor]
    gradients: list[Tensor]
    averages: list[Tensor]
    squares: list[Tensor]
    steps: list[Tensor]

    def step(self, group: dict[str, Any], *, weight_decay: float, found_inf: Tensor | None) -> None:
        adamw(
            params=self.weights,
            grads=self.gradients,
            exp_avgs=self.averages,
            exp_avg_sqs=self.squares,
            max_exp_avg_sqs=[],
            state_steps=self.steps,
            fused=True,
            found_inf=found_inf,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=weight_decay,
            eps=group["eps"],
            maximize=False,
        )


class GuardedOptimizer(Optimizer, ABC):
    """Optimizer whose step changes nothing while its attribute ``found_inf`` is a tensor of 1."""

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
        """Update every parameter that has a gradient."""
        assert closure is None, "the gradients are there already"
        for group in self.param_groups:
            trained = [parameter for parameter in group["params"] if parameter.grad is not None]
            self._step_group(trained, group)

    @abstractmethod
    def _step_group(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        """Update these parameters, which have gradients."""

    def _moments(self, parameters: list[Tensor]) -> Moments:
        return Moments(
            weights=[local_part(parameter) for parameter in parameters],
            gradients=[local_part(parameter.grad) for parameter in parameters if parameter.grad is not None],
            averages=self._states(parameters, "exp_avg"),
            squares=self._states(parameters, "exp_avg_sq"),
            steps=[self.state[parameter]["step"] for parameter in parameters],
        )

    def _states(self, parameters: list[Tensor], name: str) -> list[Tensor]:
        return [local_part(self.state[parameter][name]) for parameter in parameters]


class AnyPrecisionAdamW(GuardedOptimizer):
    """AdamW for weights that are bf16 themselves, without an fp32 copy of them.

    A bf16 number has 8 bits: an update below a 256th of a weight would be rounded away, and most are. Kahan's
    compensated sum keeps, beside each weight, what the last addition lost, and adds it next time; the pair
    has about 16 bits. (W. Kahan, Further remarks on reducing truncation errors, 1965. For AdamW: AnyPrecision
    of pytorch/torchdistx; Zamirai et al., Revisiting BFloat16 Training, arXiv 2010.06192.)

    A parameter takes 10 bytes: weight, gradient, two moments and the rest of the sum. AdamW in mixed
    precision takes 16.

    State as AdamW's, plus ``compensation``, all in the precision of the weight.
    """

    def _step_group(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = first_state(parameter, _STATE)
        for chunk in _chunks(parameters):
            self._update(chunk, group)

    def _update(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        rests = self._states(parameters, "compensation")
        # The rests are stepped, not the weights: the update joins what earlier additions lost, before
        # anything is rounded to the weights' precision.
        moments = self._moments(parameters)
        weights, moments.weights = moments.weights, rests
        moments.step(group, weight_decay=0.0, found_inf=self.found_inf)
        # Of the weights' own type: else torch launches one kernel for each of them.
        share = 1.0 if self.found_inf is None else (1 - self.found_inf).to(weights[0])
        _decay(weights, rests, rate=share * (group["lr"] * group["weight_decay"]))
        _add_compensated(weights, rests, share=share)


def first_state(parameter: Tensor, names: Sequence[str]) -> dict[str, Tensor]:
    step = torch.zeros((), dtype=torch.float32, device=local_part(parameter).device)
    return {"step": step, **{name: torch.zeros_like(parameter) for name in names}}


def _chunks(parameters: list[Tensor]) -> Iterator[list[Tensor]]:
    """Yield lists of the parameters in order: at most ``_CHUNK`` elements on this rank, or one parameter."""
    chunk: list[Tensor] = []
    size = 0
    for parameter in parameters:
        elements = local_part(parameter).numel()
        if chunk and size + elements > _CHUNK:
            yield chunk
            chunk, size = [], 0
        chunk.append(parameter)
        size += elements
    if chunk:
        yield chunk


def _decay(weights: list[Tensor], rests: list[Tensor], *, rate: Tensor | float) -> None:
    """Subtract the decay from the rests: a thousandth of a weight is below what its bf16 can show."""
    shrinkage = torch._foreach_mul(weights, rate)  # noqa: SLF001  torch's own names for lists
    torch._foreach_sub_(rests, shrinkage)


def _add_compensated(weights: list[Tensor], rests: list[Tensor], *, share: Tensor | float) -> None:
    """Add the rests to the weights by Kahan's sum: what rounding loses becomes the new rests.

    A share of 0 changes nothing. (Adding the rests again could move the last bit of the pair from one to the
    other.)
    """
    sums = torch._foreach_mul(rests, share)  # noqa: SLF001
    torch._foreach_add_(sums, weights)
    torch._foreach_sub_(weights, sums)
    torch._foreach_add_(rests, weights)
    torch._foreach_copy_(weights, sums)


class AdamW8bit(GuardedOptimizer):
    """AdamW whose moments of matrices take a byte each.

    A byte is one of 256 levels, finer near zero, of the largest value in its block: 256 neighbours in a row.
    (Dettmers et al., 8-bit Optimizers via Block-wise Quantization, arXiv 2110.02861.) Blocks do not cross
    rows, and sharding does not cut rows: how many ranks there are, now or when a checkpoint is loaded, does
    not show. A parameter of a matrix takes 10 bytes: weight, gradient, moments, scales. Vectors keep fp32,
    and so does the embedding of images, which has more dimensions.
    """

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state like torch, which would turn the bytes into numbers of the weights' type."""
        states = state_dict["state"]
        super().load_state_dict({**state_dict, "state": {}})
        saved = chain.from_iterable(group["params"] for group in state_dict["param_groups"])
        own = chain.from_iterable(group["params"] for group in self.param_groups)
        for number, parameter in zip(saved, own, strict=True):
            if number in states:
                self.state[parameter] = dict(states[number])

    def _step_group(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = _first_bytes(parameter)
            if parameter.ndim == _MATRIX:
                self._step_matrix(parameter, group)
        if others := [parameter for parameter in parameters if parameter.ndim != _MATRIX]:
            self._moments(others).step(group, weight_decay=group["weight_decay"], found_inf=self.found_inf)

    def _step_matrix(self, parameter: Tensor, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        state = self.state[parameter]
        kept = {name: (local_part(state[name]), local_part(state[f"{name}_scale"])) for name in _LEVELS}
        values = {name: _dequantised(*kept[name], _levels(name, state["step"].device)) for name in kept}
        Moments(
            weights=[local_part(parameter)],
            gradients=[local_part(parameter.grad)],
            averages=[values["exp_avg"]],
            squares=[values["exp_avg_sq"]],
            steps=[state["step"]],
        ).step(group, weight_decay=group["weight_decay"], found_inf=self.found_inf)
        for name, (codes, scales) in kept.items():
            new_codes, largest = _quantised(values[name], _levels(name, codes.device))
            if self.found_inf is not None:
                new_codes = torch.where(self.found_inf.bool(), codes, new_codes)
                largest = torch.where(self.found_inf.bool(), scales, largest)
            codes.copy_(new_codes)
            scales.copy_(largest)


def _first_bytes(parameter: Tensor) -> dict[str, Tensor]:
    """Return the first state of a parameter: bytes and scales for a matrix, else moments in fp32."""
    if parameter.ndim != _MATRIX:
        return first_state(parameter, ("exp_avg", "exp_avg_sq"))
    state = first_state(parameter, ())
    for name in _LEVELS:
        state[name] = torch.zeros_like(parameter, dtype=torch.uint8)
        state[f"{name}_scale"] = _beside(parameter, -(-parameter.shape[1] // _BLOCK))
    return state


@cache
def _levels(name: str, device: torch.device) -> Tensor:
    """Return 256 rising levels: twice as many in each of seven decades as in the one below, and 0 and 1."""
    signed = _LEVELS[name]
    levels = [0.0, 1.0]
    for decade in range(_DECADES):
        ends = torch.linspace(0.1, 1, 2**decade * (1 if signed else 2) + 1, dtype=torch.float64)
        middles = ((ends[1:] + ends[:-1]) / 2 * 10.0 ** (decade - _DECADES + 1)).tolist()
        levels += middles + ([-middle for middle in middles] if signed else [])
    return torch.tensor(sorted(levels), dtype=torch.float32, device=device)


def _beside(parameter: Tensor, columns: int) -> Tensor:
    """Return zeros with so many columns, whose rows are placed like those of the parameter."""
    local = torch.zeros(len(local_part(parameter)), columns, device=local_part(parameter).device)
    if not isinstance(parameter, DTensor):
        return local
    shape = torch.Size((parameter.shape[0], columns))
    return DTensor.from_local(
        local, parameter.device_mesh, parameter.placements, run_check=False, shape=shape, stride=(columns, 1)
    )


def _blocks(values: Tensor) -> Tensor:
    """Cut rows into blocks: the result has shape (rows, blocks, elements of a block), padded with zeros."""
    return F.pad(values, (0, -values.shape[1] % _BLOCK)).view(
        len(values), -(-values.shape[1] // _BLOCK), _BLOCK
    )


def _dequantised(codes: Tensor, scales: Tensor, levels: Tensor) -> Tensor:
    values = _blocks(levels[codes.int()]) * scales.unsqueeze(2)
    return values.flatten(1)[:, : codes.shape[1]].contiguous()


def _quantised(values: Tensor, levels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the codes of the nearest levels, and the largest value of each block."""
    blocks = _blocks(values)
    scales = blocks.abs().amax(dim=2)
    share = blocks / scales.clamp(min=torch.finfo(torch.float32).tiny).unsqueeze(2)
    codes = torch.bucketize(share, (levels[1:] + levels[:-1]) / 2)
    if levels[0] == 0:
        codes.clamp_(min=1)  # a square that became 0 would make the next update as large as 1 / eps
    return codes.flatten(1)[:, : values.shape[1]].to(torch.uint8), scales
