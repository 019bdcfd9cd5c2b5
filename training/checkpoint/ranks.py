"""The ranks that save and load together; one alone where torch.distributed is not initialised."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch.distributed as dist

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What went wrong on one rank."""

    message: str
    is_of_store: bool
    """Else of what was read or of the program."""


class RanksFailedError(Exception):
    """Raised on all ranks when it happened on any."""

    def __init__(self, failures: Mapping[int, Failure]) -> None:
        super().__init__("; ".join(f"rank {rank}: {one.message}" for rank, one in failures.items()))
        self.failures = dict(failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer(Generic[T]):
    value: T | None = None
    failure: Failure | None = None


class Ranks:
    """A process group of its own on the CPUs, so that nothing waits for a GPU; every rank makes one.

    Two threads need two of them: their messages must not mix.
    """

    def __init__(self, judge: Callable[[BaseException], Failure]) -> None:
        together = dist.is_available() and dist.is_initialized()
        self.group = dist.new_group(backend="gloo") if together else None
        self.rank = dist.get_rank() if together else 0
        self.size = dist.get_world_size() if together else 1
        self._judge = judge

    def gathered(self, value: T) -> list[T]:
        """Each rank's, on all ranks."""
        if self.group is None:
            return [value]
        values: list[T | None] = [None] * self.size
        dist.all_gather_object(values, value, group=self.group)
        return values  # type: ignore[return-value]

    def agreed(self, work: Callable[[], T]) -> list[T]:
        """What it gave on each rank.

        Raises:
            RanksFailedError: On all ranks, so that none waits for one that left.
        """
        try:
            answer = _Answer(value=work())
        except Exception as error:  # noqa: BLE001  raised below, with those of the other ranks
            answer = _Answer(failure=self._judge(error))
        answers = self.gathered(answer)
        failures = {rank: one.failure for rank, one in enumerate(answers) if one.failure}
        if failures:
            raise RanksFailedError(failures)
        return [one.value for one in answers]  # type: ignore[misc]
