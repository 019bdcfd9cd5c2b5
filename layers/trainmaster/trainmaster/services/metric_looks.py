"""Check once for each attempt whether CloudWatch has any data of its GPUs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.core.errors import RowSetAsideError
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.alarms import wanted_of
from trainmaster.core.monitoring.measurements import due_looks, is_conclusive, sought
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy.governance import Watch
from trainmaster.ports import Clock, JobReader, JobStore, MetricReader
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
