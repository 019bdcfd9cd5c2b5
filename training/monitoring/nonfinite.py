"""Finds the first value that is not finite: which module made it, of which samples, on which rank.

Every output and every gradient of every module is looked at, so a step takes longer; without the option
nothing of this exists.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn

from training.config import TrainConfig
from training.errors import FoundNotFiniteError, listed
from training.models.optimizers import local_part
from training.ranks.world import World

_SHOWN = 8
"""Samples in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    what: str
    module: str
    part: int
    bad: Tensor
    """By row of the part; of one element where the output has no rows."""


@dataclass(kw_only=True)
class Hunt:
    """Every rank makes one, and calls alike."""

    model: nn.Module
    world: World
    parts: int
    """Of a rank's share of a step."""
    numbers: Callable[[int], Sequence[int]]
    """Which samples of the data a step has on this rank."""
    _seen: list[_Seen] = field(default_factory=list)
    _part: int = -1

    @classmethod
    def by(
        cls, config: TrainConfig, *, world: World, model: nn.Module, numbers: Callable[[int], Sequence[int]]
    ) -> "Hunt | None":
        """None: the job does not want it."""
        if not config.find_nonfinite:
            return None
        return cls(model=model, world=world, parts=config.gradient_accumulation_steps, numbers=numbers)

    def __post_init__(self) -> None:
        self.model.register_forward_pre_hook(self._begins_part)
        for name, module in self.model.named_modules():
            module.register_forward_hook(partial(self._leaves, name))

    def begin(self) -> None:
        self._seen, self._part = [], -1

    def check(self, step: int) -> None:
        """Between the last backward pass and the update; waits for the device.

        Raises:
            FoundNotFiniteError: On every rank, with what the rank that came upon it earliest has to say: the
                reduced gradients carry it to the others.
        """
        told: list[tuple[int, str] | None] = [None] * self.world.size
        dist.all_gather_object(told, self._found(step))
        self._seen = []
        found = [(*one, rank) for rank, one in enumerate(told) if one]
        if found:
            _, what, rank = min(found, key=lambda one: (one[0], one[2]))
            raise FoundNotFiniteError(step=step, rank=rank, what=what)

    def _begins_part(self, *_: object) -> None:
        self._part += 1

    def _leaves(self, name: str, _module: nn.Module, _inputs: object, outputs: object) -> None:
        for output in outputs if isinstance(outputs, tuple) else (outputs,):
            if not isinstance(output, Tensor) or not output.is_floating_point():
                continue
            self._note("output", name, output)
            if output.requires_grad:
                note = partial(self._note, "gradient of the output", name)
                output.register_hook(note)  # type: ignore[no-untyped-call]  # torch's

    @torch.no_grad()
    def _note(self, what: str, name: str, values: Tensor) -> None:
        bad = ~torch.isfinite(local_part(values.detach()))  # of a tensor group: the tokens that lie here
        rows = bad.flatten(1).any(dim=1) if bad.ndim > 1 else bad.any().reshape(1)
        self._seen.append(_Seen(what=what, module=name, part=self._part, bad=rows))

    def _found(self, step: int) -> tuple[int, str] | None:
        """With its place in the order of the step, which is the same on all ranks."""
        flags = torch.stack([one.bad.any() for one in self._seen]).tolist() if self._seen else []
        if True in flags:
            place = flags.index(True)
            one = self._seen[place]
            origin = f"the {one.what} of {one.module or 'the model'}"
            return place, origin + self._samples(one, step) + self._weights(one)
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None and not local_part(parameter.grad).isfinite().all():
                return len(flags), f"the gradient of the weight {name}, while all outputs were finite"
        return None

    def _samples(self, seen: _Seen, step: int) -> str:
        rows = seen.bad.nonzero().flatten().tolist()
        numbers = list(self.numbers(step))
        share = len(numbers) // self.parts
        if len(seen.bad) != share:
            return f", in samples {listed(numbers, most=_SHOWN)}"
        bad = [numbers[seen.part * share + row] for row in rows]
        return f", in samples {listed(bad, most=_SHOWN)}"

    def _weights(self, seen: _Seen) -> str:
        """Bad weights make bad outputs, of any data."""
        module = self.model.get_submodule(seen.module)
        own = module.named_parameters(recurse=False)
        bad = [name for name, one in own if not local_part(one.detach()).isfinite().all()]
        return f"; not finite before: {', '.join(bad)}" if bad else ""
