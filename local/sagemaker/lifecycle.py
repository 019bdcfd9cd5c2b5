"""Runs a training job from Create to its end: one thread that walks through the statuses."""

import logging
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from local.clock import Timer
from local.sagemaker.cluster import Cluster
from local.sagemaker.container import Outside
from local.sagemaker.heeded import AFTER_WAIT, HEEDED
from local.sagemaker.inputs import PrepareError
from local.sagemaker.job_table import JobTable
from local.sagemaker.jobs import IllegalStepError, TrainingJob
from local.sagemaker.launching import Launcher
from local.sagemaker.mailbox import (
    ClosedError,
    Exited,
    Fail,
    HostFailed,
    Interrupt,
    Mailbox,
    Message,
    RoomOnPlan,
    Stop,
    WindowClosed,
)
from local.sagemaker.metric_definitions import Definitions
from local.sagemaker.plan_book import PlanBook
from local.sagemaker.pool_keeper import within_quota
from local.sagemaker.scraped_log import ScrapedLog
from local.sagemaker.statuses import FINAL, STOP_GRACE, Secondary, drawn_wait

logger = logging.getLogger(__name__)

_S = Secondary

_SETTLE_SECONDS = 0.25
"""Real time in which a process that does next to nothing has started, heard a signal, or ended."""

_INTERNAL_ERROR = "InternalServerError: We encountered an internal error. Please try again."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    root: Path
    """Folder of its containers; a job that has ended leaves nothing in it."""
    seed: int
    """Seed for the length of the waits."""
    plans: PlanBook
    on_end: "Callable[[JobRun], None]"
    """Called when the thread has nothing more to do."""


class JobRun:
    """The walk of one job. Others post to it; only its own thread touches the containers."""

    def __init__(self, job: TrainingJob, *, table: JobTable, outside: Outside, plan: RunPlan) -> None:
        self._job = job
        self._table = table
        self._log = ScrapedLog(
            job.name, Definitions.of(job.request), logs=outside.logs, metrics=outside.metrics
        )
        self._outside = replace(outside, logs=self._log)
        self._plan = plan
        self._mailbox = Mailbox(outside.clock)
        self._launcher = Launcher(table=table, outside=outside, plans=plan.plans, mailbox=self._mailbox)
        self._cluster: Cluster | None = None
        self._end = _S.COMPLETED
        self._failure_reason = ""
        self._trained = timedelta()
        self._thread = threading.Thread(target=self._run, name=f"training-job-{job.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def post(self, message: Message) -> None:
        self._mailbox.post(message)

    @property
    def pids(self) -> list[int]:
        cluster = self._cluster
        return cluster.pids if cluster is not None else []

    def close(self) -> None:
        """Begin to end the containers and the thread, whatever the job's status."""
        self._mailbox.close()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        spec = self._job.spec
        if spec.max_wait is not None:  # from the creation, through all interruptions
            self._stop_later(spec.max_wait, _S.MAX_WAIT_TIME_EXCEEDED)
        try:
            self._finish(self._walk())
        except ClosedError:
            logger.debug("training job %s is left as it is", self._job.name)
        except Exception:  # the bulkhead between jobs: a fault of the twin fails this job alone
            logger.exception("training job %s", self._job.name)
            self._failure_reason = _INTERNAL_ERROR
            self._finish(_S.FAILED)
        finally:
            if self._cluster is not None:
                self._cluster.reclaim()
            self._plan.plans.release(self._job.name)
            self._mailbox.leave()
            self._plan.on_end(self)

    def _stop_later(self, wait: timedelta, end: Secondary) -> Timer:
        """Post a stop after the wait; it has no effect if the job has ended by then."""
        post = self._mailbox.post
        return self._outside.clock.call_later(wait, lambda: post(Stop(end=end)))

    def _walk(self) -> Secondary:
        """Walk from status to status; return the last one, which is not yet taken."""
        steps: Mapping[Secondary, Callable[[], Secondary]] = {
            _S.STARTING: lambda: self._pass(_S.STARTING),
            _S.PENDING: self._launch,
            _S.DOWNLOADING: self._download,
            _S.TRAINING: self._train,
            _S.INTERRUPTED: self._lose_instances,
            _S.RESTARTING: lambda: self._pass(_S.RESTARTING),
            _S.STOPPING: self._stop,
            _S.UPLOADING: self._upload,
        }
        status = _S.STARTING
        while status not in FINAL:
            if not self._enter(status):  # StopTrainingJob came first; its message is here or on its way
                status = self._turn(self._hear(_S.STARTING))
                continue
            status = steps[status]()
        return status

    def _enter(self, status: Secondary) -> bool:
        now = self._outside.clock.now
        try:
            self._table.update(self._job.name, lambda job: job.moved_to(status, now()))
        except IllegalStepError:
            return False
        return True

    def _pass(self, status: Secondary) -> Secondary:
        """Pass a status in which nothing but time passes."""
        message = self._wait_in(status)
        return AFTER_WAIT[status] if message is None else self._turn(message)

    def _launch(self) -> Secondary:
        message = self._wait_in(_S.PENDING)
        if message is not None:
            return self._turn(message)
        match self._launcher.launch(self._job, self._draw("pending end")):
            case TrainingJob() as job:
                self._job = job
                return _S.DOWNLOADING
            case Secondary() as end:
                return end
            case message:
                return self._turn(message)

    def _download(self) -> Secondary:
        self._cluster = Cluster(self._job, self._outside, self._plan.root)
        try:
            self._cluster.fill()
        except PrepareError as error:
            return self._fail(f"ClientError: {error}")
        return self._pass(_S.DOWNLOADING)

    def _train(self) -> Secondary:
        assert self._cluster is not None
        begin = self._outside.clock.now()
        left = max(self._job.spec.max_runtime - self._trained, timedelta())
        deadline = self._stop_later(left, _S.MAX_RUNTIME_EXCEEDED)
        self._cluster.start(
            on_failure=lambda: self._mailbox.post(HostFailed()),
            on_end=lambda code: self._mailbox.post(Exited(code=code)),
        )
        message = self._hear(_S.TRAINING, settle_seconds=_SETTLE_SECONDS)
        deadline.cancel()
        self._trained += self._outside.clock.now() - begin
        return self._turn(message)

    def _lose_instances(self) -> Secondary:
        assert self._cluster is not None
        self._cluster.reclaim()
        self._cluster = None
        return self._pass(_S.INTERRUPTED)

    def _leave_plan(self) -> Secondary:
        """End the instances without a signal first, as with spot; the job waits for the next window."""
        if self._cluster is not None:
            self._cluster.reclaim()
            self._cluster = None
        self._plan.plans.release(self._job.name)
        return _S.PENDING

    def _stop(self) -> Secondary:
        """Stop the containers; where a test says that this takes long, it does."""
        clock = self._outside.clock
        begin, after = clock.now(), self._stop_containers()
        left = self._outside.slow_stops.least(self._job.name) - (clock.now() - begin)
        if after is _S.FAILED or left <= timedelta():
            return after
        message = self._mailbox.wait((Fail,), left)
        return after if message is None else self._turn(message)

    def _stop_containers(self) -> Secondary:
        """Stop by SIGTERM, grace, SIGKILL; how containers end makes no difference to how the job ends."""
        if self._cluster is None or not self._cluster.has_started:
            message = self._wait_in(_S.STOPPING)
            return self._end if message is None else self._turn(message)
        self._cluster.terminate()
        grace = self._outside.clock.scaled(STOP_GRACE)
        message = self._mailbox.wait((Fail, Exited), grace, settle_seconds=_SETTLE_SECONDS)
        if isinstance(message, Fail):
            return self._turn(message)
        self._cluster.kill()
        return _S.UPLOADING

    def _upload(self) -> Secondary:
        assert self._cluster is not None
        try:
            self._cluster.upload()
        except FileNotFoundError as error:
            return self._fail(f"ClientError: Artifact upload failed: {error}")
        message = self._wait_in(_S.UPLOADING)
        return self._end if message is None else self._turn(message)

    def _turn(self, message: Message) -> Secondary:
        """Return the status that a message leads to."""
        match message:
            case Stop(end=end):
                self._end = end
                return _S.STOPPING
            case Interrupt():
                return _S.INTERRUPTED
            case WindowClosed() | RoomOnPlan():
                return self._leave_plan()
            case Exited(code=0):
                return _S.UPLOADING
            case HostFailed() | Exited():
                assert self._cluster is not None
                return self._fail(self._cluster.failure_reason())
            case Fail(reason=reason):
                return self._fail(reason)

    def _fail(self, reason: str) -> Secondary:
        self._failure_reason = reason
        return _S.FAILED

    def _hear(self, status: Secondary, *, settle_seconds: float = 0.0) -> Message:
        message = self._mailbox.wait(HEEDED[status], settle_seconds=settle_seconds)
        assert message is not None
        return message

    def _wait_in(self, status: Secondary) -> Message | None:
        """Wait as long as the status lasts, or until a message comes."""
        wait = drawn_wait(status, self._draw(status), is_warm=self._job.warm_pool is not None)
        return self._mailbox.wait(HEEDED[status], self._outside.clock.scaled(wait))

    def _draw(self, what: str) -> random.Random:
        """Return a random source for this job and purpose alone, so that other threads do not change it."""
        return random.Random(f"{self._plan.seed}/{self._job.name}/{what}")  # noqa: S311  not a secret

    def _finish(self, end: Secondary) -> None:
        """Make the end and the last metrics visible, once nothing of the job is left to do."""
        if self._cluster is not None:
            if end is _S.FAILED:
                self._cluster.abandon()
            self._cluster.remove()
            self._cluster = None
        self._table.update(self._job.name, lambda job: self._ended(job, end))

    def _ended(self, job: TrainingJob, end: Secondary) -> TrainingJob:
        job, now = replace(job, final_metrics=self._log.last()), self._outside.clock.now()
        ended = job.failed(self._failure_reason, now) if end is _S.FAILED else job.moved_to(end, now)
        return within_quota(ended, self._table.all(), self._outside.world.now, self._draw("warm pool"))
