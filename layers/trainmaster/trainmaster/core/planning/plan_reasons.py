"""Why jobs wait, by name, put into words once somebody asks: whoever only carries a plan out never does."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainmaster.core.jobs.attempts import Reason


@dataclass(slots=True)
class Later:
    """A reason of which all numbers are known already: the same words, whenever they are asked for."""

    _words: Callable[[], Reason]
    _said: Reason | None = None

    def said(self) -> Reason:
        if self._said is None:
            self._said = self._words()
        return self._said


class PlanReasons(Mapping[str, Reason]):
    """Those of one plan."""

    __slots__ = ("_by_job",)

    def __init__(self, by_job: Mapping[str, Reason | Later]) -> None:
        self._by_job = by_job

    def __getitem__(self, job: str) -> Reason:
        why = self._by_job[job]
        return why.said() if isinstance(why, Later) else why

    def __contains__(self, job: object) -> bool:
        return job in self._by_job

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_job)

    def __len__(self) -> int:
        return len(self._by_job)

    def __repr__(self) -> str:
        return f"PlanReasons({dict(self)})"
