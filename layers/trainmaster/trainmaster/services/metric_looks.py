"""Look at what CloudWatch has of running attempts: data of their GPUs, and progress in their logs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from trainmaster.core.errors import RowSetAsideError
from trainmaster.core.jobs.elastic_state import NEVER_RAN, reported_progress
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.alarms import wanted_of
from trainmaster.core.monitoring.measurements import due_looks, is_conclusive, sought
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy.governance import Watch
from trainmaster.ports import Clock, JobReader, JobStore, LogReader, MetricReader
from trainmaster.services.deadline import Deadline


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
