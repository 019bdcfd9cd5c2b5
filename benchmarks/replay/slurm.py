"""Slurm's multifactor priority with EASY backfill, as its documentation describes both; nobody is stopped.

Slurm's own default is no preemption. Requested times are known to it, run times are not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trainmaster_client.simulate.engine.admitted_jobs import Admitted
from trainmaster_client.simulate.engine.assumptions import COLD_START
from trainmaster_client.simulate.engine.past_jobs import PastJob
from trainmaster_client.simulate.engine.plain_pool import Entry, PlainPool
from trainmaster_client.simulate.engine.runs import SECOND
from trainmaster_client.simulate.histories.trace_draws import PRIORITIES

WEIGHT_AGE, WEIGHT_FAIR_SHARE, WEIGHT_QOS = 1_000, 10_000, 20_000
"""PriorityWeight*: a step of class is worth all of the fair share, and that is worth ten times the age."""
MAX_AGE_S = 7 * 24 * 3600
"""PriorityMaxAge, by default."""
HALF_LIFE_S = 7 * 24 * 3600
"""PriorityDecayHalfLife, by default."""
CALC_PERIOD_S = 300
"""PriorityCalcPeriod, by default."""
MOST_TESTED = 500
"""bf_max_job_test, by default: jobs looked at for backfill."""
_HIGHEST = max(PRIORITIES.values())


@dataclass(kw_only=True)
class Slurm(PlainPool):
    usage: dict[str, float] = field(default_factory=dict)
    """Instance-seconds by team, decayed."""
    charged_s: dict[str, float] = field(default_factory=dict)
    """Second up to which each running job is counted in the usage."""
    calculated_s: float = 0
    known: dict[str, float] = field(default_factory=dict)
    """Priority of each job, as last calculated."""

    def turn(self, entry: Entry) -> tuple[Any, ...]:
        return (-self.known[entry.past.name], entry.past.submitted_at, entry.past.name)

    def submitted(self, past: PastJob, admitted: Admitted) -> None:
        self.usage.setdefault(past.team, 0.0)
        self.known[past.name] = self._priority(Entry(past=past, found=admitted))
        super().submitted(past, admitted)

    def _ends(self, name: str, end: str, *, broke: bool = False) -> None:
        self._charge(self.running[name])
        del self.charged_s[name]
        super()._ends(name, end, broke=broke)

    def _start(self, entry: Entry) -> None:
        self.charged_s[entry.past.name] = self.sagemaker.event_queue.now
        super()._start(entry)

    def decide(self) -> None:
        """Start from the head while the head fits; then whoever cannot delay it."""
        if self.sagemaker.event_queue.now - self.calculated_s >= CALC_PERIOD_S:
            self._calculate()
        while self.waiting and self.may_start(self.waiting[0]):
            self._start(self.waiting.pop(0))
        if len(self.waiting) > 1 and self._free:
            self._backfill()

    # ---- priorities

    def _calculate(self) -> None:
        now = self.sagemaker.event_queue.now
        for entry in self.running.values():
            self._charge(entry)
        left = 0.5 ** ((now - self.calculated_s) / HALF_LIFE_S)
        self.usage = {team: used * left for team, used in self.usage.items()}
        self.calculated_s = now
        for entry in self.waiting:
            self.known[entry.past.name] = self._priority(entry)
        self.waiting.sort(key=self.turn)

    def _charge(self, entry: Entry) -> None:
        name, now = entry.past.name, self.sagemaker.event_queue.now
        self.usage[entry.past.team] += _count(entry) * (now - self.charged_s[name])
        self.charged_s[name] = now

    def _priority(self, entry: Entry) -> float:
        waited_s = (self.sagemaker.now - entry.past.submitted_at) / SECOND
        total = sum(self.usage.values())
        used = self.usage[entry.past.team] / total if total else 0.0
        return (
            WEIGHT_AGE * min(waited_s / MAX_AGE_S, 1.0)
            + WEIGHT_FAIR_SHARE * 2 ** (-used * len(self.usage))  # equal shares
            + WEIGHT_QOS * entry.found.priority / _HIGHEST
        )

    # ---- EASY

    @property
    def _free(self) -> int:
        return sum(self.free.values())

    def _backfill(self) -> None:
        shadow_s, extra = self._reservation(_count(self.waiting[0]))
        for entry in self.waiting[1 : MOST_TESTED + 1]:
            count = _count(entry)
            if count > self._free or not self.may_start(entry):
                continue
            if self._ends_by_s(entry, self.sagemaker.event_queue.now) > shadow_s:
                if count > extra:
                    continue
                extra -= count
            self.waiting.remove(entry)
            self._start(entry)
            if not self._free:
                return

    def _reservation(self, needed: int) -> tuple[float, int]:
        """Return when the head can start at the latest, and what it leaves free then."""
        free = self._free
        for end_s, count in sorted(self._ends_to_come()):
            free += count
            if free >= needed:
                return end_s, free - needed
        return float("inf"), 0

    def _ends_to_come(self) -> Iterator[tuple[float, int]]:
        runs = self.sagemaker.runs
        for name, entry in self.running.items():
            yield self._ends_by_s(entry, runs[name].start_s), _count(entry)

    @staticmethod
    def _ends_by_s(entry: Entry, start_s: float) -> float:
        return start_s + (entry.past.max_runtime + COLD_START) // SECOND


def _count(entry: Entry) -> int:
    return sum(entry.found.shape.vector.values())
