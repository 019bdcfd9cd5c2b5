"""Look at what CloudWatch has of running attempts: data of their GPUs, progress and loss in their logs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from trainmaster.core.errors import RowSetAsideError
from trainmaster.core.jobs.elastic_state import NEVER_RAN, reported_progress
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.alarms import wanted_of
from trainmaster.core.monitoring.loss_judgement import VALUES, judged
from trainmaster.core.monitoring.measurements import due_looks, is_conclusive, sought
from trainmaster.core.monitoring.metric_lines import MetricValue, metric_definition
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy.governance import Watch
from trainmaster.core.policy.loss_rule import LossRule
from trainmaster.ports import Clock, JobReader, JobStore, LogReader, MetricReader
from trainmaster.services.deadline import Deadline
from trainmaster.services.job_steps import change_job


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLooks:
    metrics: MetricReader
    reader: JobReader
    store: JobStore
    clock: Clock

    def run(self, live: Sequence[RunningJob], watch: Watch, deadline: Deadline) -> Iterator[Exception]:
        """Ask in one call about all attempts that are due; yield what failed, for the next run.

        Crash safety: the result is noted on the job; a death before that costs the call once more.
        """
        now = self.clock()
        due = due_looks(live, watch, now=now)
        if not due or deadline.is_over:
            return
        wanted = {name: wanted_of(entry.vector, watch) for name, entry in due.items()}
        names = [host for name, hosts in wanted.items() for host in hosts.host_names(name)]
        since = min(entry.training_since or now for entry in due.values())
        try:
            has_data = self.metrics.have_data(names, since=since, until=now)
        except Exception as error:  # noqa: BLE001  the next run asks again, as long as there is time
            yield error
            return
        for entry in due.values():
            if deadline.is_over:
                return
            try:
                self._note(entry, watch, has_data)
            except Exception as error:  # noqa: BLE001  one job must not keep the others waiting
                yield error

    def _note(self, entry: RunningJob, watch: Watch, has_data: Mapping[str, bool]) -> None:
        hosts = wanted_of(entry.vector, watch).host_names(entry.training_job_name)
        if any(host not in has_data for host in hosts):
            return
        silent = [host for host in hosts if not has_data[host]]
        job = self.reader.job(entry.name)
        if job is None or not is_conclusive(job, entry.training_job_name):
            return
        role = self._role(job.name) if silent else ""
        now = self.clock()
        after = sought(job, silent, hosts=len(hosts), role=role, now=now)
        self.store.commit([Change(before=job, after=after)], at=now)

    def _role(self, name: str) -> str:
        """Read the role from the request as it was submitted; every attempt runs with the same one."""
        try:
            return str(self.reader.request(name).get("RoleArn", "of the job"))
        except RowSetAsideError:
            return "of the job"


PROGRESS_EVERY = timedelta(minutes=5)
"""How often the log of an elastic job is read for its progress."""
MOST_LOGS = 20
"""Logs that one run reads at most; each may take seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressLooks:
    """Reads the progress lines of elastic jobs, by which the planner judges what another width is worth."""

    logs: LogReader
    reader: JobReader
    store: JobStore
    clock: Clock

    def run(self, live: Sequence[RunningJob], deadline: Deadline) -> Iterator[Exception]:
        """Read the logs that are due; yield what failed, for the next run.

        Crash safety: progress is an observation; a death before the write costs a look.
        """
        trains = (entry for entry in live if entry.widths is not None and entry.training_since is not None)
        looks = 0
        for entry in trains:
            if deadline.is_over or looks >= MOST_LOGS:
                return
            try:
                looks += self._look(entry)
            except Exception as error:  # noqa: BLE001  one job must not keep the others waiting
                yield error

    def _look(self, entry: RunningJob) -> bool:
        """Note a job's progress; return whether its log was read."""
        job, now = self.reader.job(entry.name), self.clock()
        if job is None or job.live is None or job.live.training_job_name != entry.training_job_name:
            return False
        state = job.elastic or NEVER_RAN
        if state.progress is not None and now - state.progress.at < PROGRESS_EVERY:
            return False
        lines = self.logs.tail(entry.training_job_name)
        progress = reported_progress(lines, state.progress, width=job.live.shape.instances, at=now)
        if progress != state.progress:
            after = replace(job, elastic=replace(state, progress=progress))
            self.store.commit([Change(before=job, after=after)], at=now)
        return True


MINUTES_BETWEEN = 5
"""Minutes between two looks at one job, or more where there are more than 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLooks:
    logs: LogReader
    reader: JobReader
    store: JobStore
    clock: Clock

    def run(
        self, live: Sequence[RunningJob], rule: LossRule | None, deadline: Deadline
    ) -> Iterator[Exception]:
        """Read the logs whose turn it is; yield what failed, for their next turn.

        Crash safety: a loss is an observation, and the look at a later turn makes it again.
        """
        for entry in in_turn(live, now=self.clock()) if rule is not None else ():
            if deadline.is_over or rule is None:
                return
            try:
                self._look(entry, rule)
            except Exception as error:  # noqa: BLE001  one job must not keep the others waiting
                yield error

    def _look(self, entry: RunningJob, rule: LossRule) -> None:
        line = metric_definition(self.reader.request(entry.name), rule.metric)
        if line is None:
            return
        values = line.newest(self.logs.tail(entry.training_job_name), most=VALUES)
        read = partial(self.reader.job, entry.name)
        step = partial(self._judged, entry.training_job_name, values, rule)
        change_job(read(), step, read=read, store=self.store, clock=self.clock)

    def _judged(
        self, training_job_name: str, values: Sequence[MetricValue], rule: LossRule, job: Job
    ) -> Change | None:
        if job.live is None or job.live.training_job_name != training_job_name:
            return None
        after = judged(job, values, rule, now=self.clock())
        return None if after == job else Change(before=job, after=after)


def in_turn(live: Sequence[RunningJob], *, now: datetime) -> list[RunningJob]:
    """Return the jobs whose turn it is in this minute, at most ``MOST_LOGS``; nothing is stored for it.

    They begin with another one at each turn, as a run may end before the last.
    """
    trains = [entry for entry in live if entry.state is JobState.RUNNING and entry.training_since is not None]
    turns = max(MINUTES_BETWEEN, -(-len(trains) // MOST_LOGS))
    cycle, turn = divmod(int(now.timestamp()) // 60, turns)
    due = sorted(trains, key=lambda entry: entry.name)[turn::turns]
    first = cycle % len(due) if due else 0
    return due[first:] + due[:first]
