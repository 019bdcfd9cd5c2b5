"""When jobs that others wait for are likely to end, and when those are likely to start."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from trainmaster.api.job_context import NO_PROSPECT, Likely, Prospect, Standing, estimated_start, standing_of
from trainmaster.api.request_context import RequestContext
from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.task_rounds import tasks_beside, tasks_in_rounds, waiting_tasks
from trainmaster.core.arrays.tasks import parse_task_name, position_of, task_name
from trainmaster.core.jobs.end_conditions import Condition
from trainmaster.core.jobs.index_sets import first_positions
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.run_time import likely_left
from trainmaster.core.lifecycle.dependents import eligible, ended_in_array
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.expected_ends import UNKNOWN_RUN, chances
from trainmaster.core.planning.queue_entries import running_entry

MOST_ANCESTORS = 50
"""Jobs that one estimate looks at; behind more there is none."""
MOST_TASKS = 100
"""Tasks of an array that an estimate of its end reads."""
_NINE_OF_TEN = 0.9


@dataclass(slots=True, kw_only=True)
class ParentEnds:
    """Works out ends through the graph, each job once."""

    context: RequestContext
    _known: dict[str, Likely | None] = field(default_factory=dict)
    """Ends by entry id; None: nobody can tell."""

    def prospect(self, job: Job, standing: Standing) -> Prospect:
        """Say when a job is likely to start: after its parents' ends, and then its own wait."""
        if not job.waits_for_others:
            return estimated_start(job, standing, self.context)
        if not job.is_waiting:
            return NO_PROSPECT
        begins = self.begin_of(job)
        if begins is None:
            return Prospect(note="not estimated: nobody can tell when the jobs that it waits for end")
        wait = self._own_wait(job)
        if wait is None:
            return Prospect(note="not estimated: nobody can tell how long it waits once they have ended")
        return Prospect(likely=Likely(p50=begins.p50 + wait.likely, p90=begins.p90 + wait.at_worst))

    def begin_of(self, job: Job) -> Likely | None:
        """Return when the last of its parents is likely to end; None: nobody can tell."""
        assert job.after is not None, job.name
        conditions = {condition.entry_id: condition for condition in job.after.open}
        reader = self.context.outside.reader
        jobs = reader.jobs([condition.job for condition in conditions.values()])
        stems = {condition.array for condition in conditions.values() if condition.array is not None}
        arrays = reader.arrays(sorted(stems)) if stems else {}
        known: list[Likely] = []
        for entry_id, condition in conditions.items():
            parent, array = jobs.get(condition.job), arrays.get(condition.array or "")
            if parent is not None and parent.spec.entry_id == entry_id:
                end = self._once(entry_id, partial(self._worked_out, parent))
            elif array is not None:
                end = self._once(entry_id, partial(self._end_in_array, array, condition))
            else:
                return None
            if end is None:
                return None
            known.append(end)
        return _last(known)

    def likely_ends(self) -> Mapping[str, datetime]:
        """Return by entry id when jobs are likely to end, of those that were looked at."""
        return {entry_id: end.p50 for entry_id, end in self._known.items() if end is not None}

    def _once(self, entry_id: str, work_out: Callable[[], Likely | None]) -> Likely | None:
        if entry_id not in self._known:
            if len(self._known) >= MOST_ANCESTORS or not self.context.has_time:
                return None
            self._known[entry_id] = None  # whoever comes here again meanwhile finds no end, not a circle
            self._known[entry_id] = work_out()
        return self._known[entry_id]

    def _worked_out(self, job: Job) -> Likely | None:
        now = self.context.outside.clock()
        if job.is_final:
            return Likely(p50=now, p90=now)
        if job.is_live:
            _, likely, late = chances(running_entry(job), now=now)
            most = job.live_attempt.max_runtime.total_seconds()  # also of one about which nothing is known
            p50, p90 = (timedelta(seconds=min(seconds, most)) for seconds in (likely, late))
            return Likely(p50=now + p50, p90=now + p90)
        start = self.prospect(job, standing_of(job, self.context, estimate=True)).likely
        if start is None:
            return None
        likely_length = min(likely_left(job) or UNKNOWN_RUN, job.spec.max_runtime)
        return Likely(p50=start.p50 + likely_length, p90=start.p90 + _long(job, likely_length))

    def _end_in_array(self, array: Array, condition: Condition) -> Likely | None:
        """Estimate the end of an array, or of one of its tasks that is no job yet.

        The next of its tasks starts in its turn, or once one of them ends if that is as many as may run;
        from then on they take as many rounds as the pool and the throttle ask for.
        """
        now = self.context.outside.clock()
        if array.is_ended or ended_in_array(array, condition) is not None:
            return Likely(p50=now, p90=now)
        task = None if condition.entry_id == array.entry_id else parse_task_name(condition.job)
        left = waiting_tasks(array, upto=None if task is None else position_of(array, task.index))
        running = self._running_tasks(array)
        if not left:
            return _last(running)
        is_full = array.at_most is not None and array.jobs.running >= array.at_most
        begins = _first(running) if is_full else self._next_start(array)
        pool = self.context.policy.pool(array.template.spec.pool)
        if begins is None or pool is None:
            return None
        length = min(likely_left(array.template) or UNKNOWN_RUN, array.template.spec.max_runtime)
        rounds = tasks_in_rounds(left, tasks_beside(array, pool_vector(pool)), length)
        at_worst = rounds - length + _long(array.template, length)
        return Likely(p50=begins.p50 + rounds, p90=begins.p90 + at_worst)

    def _next_start(self, array: Array) -> Likely | None:
        if array.held:
            return None
        standing = standing_of(array.template, self.context, estimate=True)
        return self.prospect(array.template, standing).likely

    def _running_tasks(self, array: Array) -> list[Likely]:
        """Return the likely ends of the tasks that run, as far as they are among the first ones."""
        if not array.jobs.running:
            return []
        places = first_positions(array.existing, MOST_TASKS)
        jobs = self.context.outside.reader.jobs(
            task_name(array.name, array.indices[place]) for place in places
        )
        ends = (self._worked_out(job) for job in jobs.values() if job.is_live)
        return [end for end in ends if end is not None]

    def _own_wait(self, job: Job) -> "_Wait | None":
        """Estimate how long the job would wait if its conditions held now."""
        pool, now = self.context.policy.pool(job.spec.pool), self.context.outside.clock()
        if pool is None:
            return None
        begun = eligible(job, pool=pool, now=now)
        start = estimated_start(begun, standing_of(begun, self.context, estimate=True), self.context).likely
        if start is None:
            return None
        none = timedelta()
        return _Wait(likely=max(start.p50 - now, none), at_worst=max(start.p90 - now, none))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    likely: timedelta
    at_worst: timedelta
    """Nine tenths of the waits are no longer."""


def _first(ends: Sequence[Likely]) -> Likely | None:
    return min(ends, key=lambda end: end.p50, default=None)


def _last(ends: Sequence[Likely]) -> Likely | None:
    if not ends:
        return None
    return Likely(p50=max(end.p50 for end in ends), p90=max(end.p90 for end in ends))


def _long(job: Job, likely_length: timedelta) -> timedelta:
    """Return a length of training that nine of ten such jobs do not exceed."""
    if job.spec.likely is None:
        return job.spec.max_runtime
    return max(job.spec.likely.quantile(_NINE_OF_TEN), likely_length)
