"""Pollux's rule for widths, with the speed of each job known: a greedy search in place of its genetic one.

Source: Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning" (OSDI 2021):
maximise the power mean (p = -1) of the speed-ups of all jobs over their fair share, where one that would
change its allocation counts for less, by ``(age - changes * delay) / (age + delay)``. The global batch is
fixed here, so goodput is speed. The search gives each job its least width, those that run first and then the
earliest, and then instance for instance to the elastic job whose part of the mean gains most. It knows no
priorities, and stops jobs only for another width.
"""

import math
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

from trainmaster.core.jobs.instances import Shape
from trainmaster_client.simulate.engine.assumptions import COLD_START, RESTORE, STOP
from trainmaster_client.simulate.engine.event_queue import MINUTE_S, What
from trainmaster_client.simulate.engine.plain_pool import Entry, PlainPool
from trainmaster_client.simulate.engine.replays import RESIZED
from trainmaster_client.simulate.engine.runs import SECOND

PERIOD_S = MINUTE_S
"""Least time between two allocations, as in the paper."""
DELAY_S = (STOP + COLD_START + RESTORE) // SECOND
"""Time without training that a change of width takes; the paper, on its own cluster, has 30 seconds."""
LEAST_FACTOR = 0.01


@dataclass(kw_only=True)
class Pollux(PlainPool):
    wanted: dict[str, int] = field(default_factory=dict)
    """Width of each job by the last allocation; those without instances are left out."""
    changes: dict[str, int] = field(default_factory=dict)
    next_s: int = 0
    """Second from which there may be another allocation."""
    put_s: int = 0
    """Second for which an allocation is on the event queue."""

    def decide(self) -> None:
        """Allocate if the last time is long enough ago, and start what fits of the last allocation."""
        now = self.sagemaker.event_queue.now
        if now >= self.next_s:
            self._allocate()
            self.next_s = math.ceil(now) + PERIOD_S
        elif self.put_s < self.next_s:
            self.put_s = self.next_s
            self.sagemaker.event_queue.put(self.next_s, What.MINUTE, self.sagemaker.pool)
        for entry in tuple(self.waiting):
            width = self.wanted.get(entry.past.name)
            if width is not None and self.may_start(sized := self._sized(entry, width)):
                self.waiting.remove(entry)
                self._start(sized)

    def turn(self, entry: Entry) -> tuple[object, ...]:
        return (entry.past.submitted_at, entry.past.name)

    def _ends(self, name: str, end: str, *, broke: bool = False) -> None:
        self._was(name, self.wanted.pop(name, 0), resized=end == "preempted")
        super()._ends(name, end, broke=broke)
        if end == "preempted":
            self.tally.attempts[-1] = self.tally.attempts[-1]._replace(end=RESIZED)

    def _was(self, name: str, width: int, *, resized: bool) -> None:
        """Keep the width that a job is stopped for; one that has ended needs none."""
        if resized:
            self.wanted[name] = width
            self.changes[name] = self.changes.get(name, 0) + 1

    # ---- the allocation

    def _allocate(self) -> None:
        present = {name: _width(entry) for name, entry in self.running.items()}
        left = sum(self.free.values()) + sum(present.values())
        widths: dict[str, int] = {}
        for entry in (*self.running.values(), *self.waiting):
            name = entry.past.name
            least = self.wanted[name] if self._is_fixed(entry) else _least(entry)
            if least <= left:
                widths[name] = least
                left -= least
        self._widen(widths, present, left)
        self.wanted = widths
        for name, entry in tuple(self.running.items()):
            if widths[name] != present[name] and not self._is_fixed(entry):
                self._stop(entry, for_job="")

    def _is_fixed(self, entry: Entry) -> bool:
        """Tell whether the allocation leaves a job as it is: it is rigid, or starts or stops just now."""
        run = self.sagemaker.runs.get(entry.past.name)
        now = self.sagemaker.event_queue.now
        return run is not None and (
            entry.past.elastic is None or run.stopped_s is not None or now < run.train_s
        )

    def _widen(self, widths: dict[str, int], present: dict[str, int], left: int) -> None:
        """Give what is left, step by step, to the job whose part of the mean gains most an instance."""
        share = (sum(self.free.values()) + sum(present.values())) / max(len(widths), 1)
        entries = {entry.past.name: entry for entry in (*self.running.values(), *self.waiting)}
        steps = [
            step
            for name in widths
            if not self._is_fixed(entries[name])
            for step in self._step(entries[name], widths[name], present, share, left)
        ]
        heapify(steps)
        while steps:
            _, name, count = heappop(steps)
            if count - widths[name] <= left:
                left -= count - widths[name]
                widths[name] = count
            for step in self._step(entries[name], widths[name], present, share, left):
                heappush(steps, step)

    def _step(
        self, entry: Entry, width: int, present: dict[str, int], share: float, left: int
    ) -> list[tuple[float, str, int]]:
        """Return the best of the wider widths by its gain an instance, as a negative number; or none."""
        elastic, name = entry.past.elastic, entry.past.name
        if elastic is None:
            return []
        counts, speeds = elastic.widths.counts, elastic.speeds
        fair = speeds[max((count for count in counts if count <= share), default=counts[0])]

        def part(count: int) -> float:
            kept = present.get(name, count) == count
            return fair / (speeds[count] * (1.0 if kept else self._factor(entry)))

        wider = [count for count in counts if width < count <= width + left]
        gains = [((part(count) - part(width)) / (count - width), name, count) for count in wider]
        return [best] if gains and (best := min(gains))[0] < 0 else []

    def _factor(self, entry: Entry) -> float:
        age = (self.sagemaker.now - entry.past.submitted_at) / SECOND
        lost = self.changes.get(entry.past.name, 0) * DELAY_S
        return max((age - lost) / (age + DELAY_S), LEAST_FACTOR)

    def _sized(self, entry: Entry, width: int) -> Entry:
        """Return a job as it starts at a width: its run time is as many instance-seconds at each."""
        past = self.sagemaker.courses[entry.past.name].past
        if past.elastic is None:
            return entry
        (capacity,) = entry.found.shape.vector
        run_time = past.max_runtime * past.elastic.widths.largest / width
        sized = replace(entry.found, shape=Shape(vector={capacity: width}))
        return replace(entry, past=replace(past, max_runtime=run_time), found=sized)


def _width(entry: Entry) -> int:
    return sum(entry.found.shape.vector.values())


def _least(entry: Entry) -> int:
    return _width(entry) if entry.past.elastic is None else entry.past.elastic.widths.least
