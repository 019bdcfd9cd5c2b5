"""The jobs that are under way."""

import threading

from local.sagemaker.container import Outside
from local.sagemaker.job_table import JobTable
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.lifecycle import JobRun, RunPlan
from local.sagemaker.mailbox import Message
from local.sagemaker.plan_book import PlanBook


class Runs:
    def __init__(self, *, table: JobTable, outside: Outside, plans: PlanBook, seed: int) -> None:
        self._table = table
        self._outside = outside
        self._plans = plans
        self._seed = seed
        self._lock = threading.Lock()
        self._runs: dict[str, JobRun] = {}

    def start(self, job: TrainingJob) -> None:
        plan = RunPlan(
            root=self._outside.work_dir.resolve() / job.name,
            seed=self._seed,
            plans=self._plans,
            on_end=self._forget,
        )
        run = JobRun(job, table=self._table, outside=self._outside, plan=plan)
        with self._lock:
            self._runs[job.name] = run
        run.start()

    def post(self, name: str, message: Message) -> None:
        """Post a message to a job; nothing happens if it has ended meanwhile."""
        run = self._runs.get(name)
        if run is not None:
            run.post(message)

    def pids(self, name: str) -> list[int]:
        run = self._runs.get(name)
        return run.pids if run is not None else []

    def close(self) -> None:
        """End all containers and wait until they are gone."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.close()
        for run in runs:
            run.join()

    def _forget(self, run: JobRun) -> None:
        with self._lock:
            self._runs = {name: other for name, other in self._runs.items() if other is not run}
