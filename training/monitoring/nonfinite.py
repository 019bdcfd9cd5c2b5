"""Finds the first value that is not finite: which module made it, from which samples, on which rank.

Every output and every gradient of every module is checked, so a step takes longer; without the option
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
"""The most samples that a message lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    what: str
    module: str
    part: int
    bad: Tensor
    """True for each row of the part that is bad; one element where the output has no rows."""


@dataclass(kw_only=True)
class Hunt:
    """Looks for values that are not finite. Every rank makes one and calls alike."""

    model: nn.Module
    world: World
    parts: int
    """Parts (micro-batches) of a rank's share of a step."""
    numbers: Callable[[int], Sequence[int]]
    """Returns the numbers of the samples that a step has on this rank."""
    _seen: list[_Seen] = field(default_factory=list)
    _part: int = -1

    @classmethod
    def by(
        cls, config: TrainConfig, *, world: World, model: nn.Module, numbers: Callable[[int], Sequence[int]]
    ) -> "Hunt | None":
        """Make one for this job; None if its ``find_nonfinite`` is off."""
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
        """Check the step between its last backward pass and the update; waits for the device.

        Raises:
            FoundNotFiniteError: Raised on every rank, with the finding of the rank that met it earliest: the
                reduced gradients carry it to the others.
        """
        reports: list[tuple[int, str] | None] = [None] * self.world.size
        dist.all_gather_object(reports, self._found(step))
        self._seen = []
        findings = [(*report, rank) for rank, report in enumerate(reports) if report]
        if findings:
            _, what, rank = min(findings, key=lambda finding: (finding[0], finding[2]))
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
        """Describe this rank's first bad value, with its place in the step's order, the same on all ranks.

        Returns None if there is none.
        """
        flags = torch.stack([seen.bad.any() for seen in self._seen]).tolist() if self._seen else []
        if True in flags:
            place = flags.index(True)
            seen = self._seen[place]
            origin = f"the {seen.what} of {seen.module or 'the model'}"
            return place, origin + self._samples(seen, step) + self._weights(seen)
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
        """Name the module's own weights that are bad: they make bad outputs from any data."""
        module = self.model.get_submodule(seen.module)
        own = module.named_parameters(recurse=False)
        bad = [name for name, weight in own if not local_part(weight.detach()).isfinite().all()]
        return f"; not finite before: {', '.join(bad)}" if bad else ""
