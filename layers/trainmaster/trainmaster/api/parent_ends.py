"""When jobs that others wait for are likely to end, and when those are likely to start."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.api.job_context import NO_PROSPECT, Likely, Prospect, Standing, estimated_start, standing_of
from trainmaster.api.request_context import RequestContext
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.run_time import likely_left
from trainmaster.core.lifecycle.dependents import eligible
from trainmaster.core.planning.expected_ends import UNKNOWN_RUN, chances
from trainmaster.core.planning.queue_entries import running_entry

MOST_ANCESTORS = 50
"""Jobs that one estimate looks at; behind more there is none."""
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
        names = [condition.job for condition in job.after.open]
        parents = self.context.outside.reader.jobs(names).values()
        wanted = {condition.entry_id for condition in job.after.open}
        ends = [self._end_of(parent) for parent in parents if parent.spec.entry_id in wanted]
        known = [end for end in ends if end is not None]
        if len(known) < len(wanted):
            return None
        return Likely(p50=max(end.p50 for end in known), p90=max(end.p90 for end in known))

    def likely_ends(self) -> Mapping[str, datetime]:
        """Return by entry id when jobs are likely to end, of those that were looked at."""
        return {entry_id: end.p50 for entry_id, end in self._known.items() if end is not None}

    def _end_of(self, job: Job) -> Likely | None:
        entry_id = job.spec.entry_id
        if entry_id not in self._known:
            if len(self._known) >= MOST_ANCESTORS or not self.context.has_time:
                return None
            self._known[entry_id] = None  # whoever comes here again meanwhile finds no end, not a circle
            self._known[entry_id] = self._worked_out(job)
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


def _long(job: Job, likely_length: timedelta) -> timedelta:
    """Return a length of training that nine of ten such jobs do not exceed."""
    if job.spec.likely is None:
        return job.spec.max_runtime
    return max(job.spec.likely.quantile(_NINE_OF_TEN), likely_length)
