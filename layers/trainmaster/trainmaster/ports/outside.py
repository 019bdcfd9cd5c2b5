"""Protocols for AWS services other than the table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from trainmaster.core.jobs.observations import Described, Listed, Newest, Observation
from trainmaster.core.monitoring.alarms import Alarm, AlarmReading
from trainmaster.core.policy.plan_windows import PlanSeen
from trainmaster.core.request.request import Launcher
from trainmaster.core.submission.shared_folders import JobFolder

Clock = Callable[[], datetime]
"""Returns the current time, with time zone UTC."""


class Beside(Protocol):
    """Runs tasks side by side and draws the next when a worker is free. Tasks must not raise."""

    @property
    def hands(self) -> int:
        """Number of tasks that run at once."""

    def __call__(self, tasks: Iterable[Callable[[], object]]) -> None: ...


class TrainingApi(Protocol):
    """SageMaker. Every call may raise UnavailableError, which is worth a retry."""

    def create(self, request: Mapping[str, Any], *, launcher: Launcher | None = None) -> str:
        """Create a training job and return its ARN.

        The call is made with a session of ``launcher``; None stands for the stack itself.

        Raises:
            NameTakenError: The name exists.
            TrainingRefusedError: Refused for good.
            ServerFaultError: SageMaker failed; it may have created the training job anyway.
            OutcomeUnknownError: No answer came back.
            LauncherRefusedError: Nothing was sent: there is no session of ``launcher``.
            UnclassifiedTrainingError: None of these.
        """

    def describe(self, training_job_name: str) -> Observation | None: ...

    def tags(self, training_job_arn: str) -> dict[str, str]: ...

    def stop(self, training_job_name: str) -> None:
        """Ask SageMaker to stop a training job; it is no error if it has ended already."""

    def keep_alive(self, training_job_name: str, period: timedelta) -> bool:
        """Set how long its warm pool is kept after its end; zero gives it up. False if it has none."""


class TrainingJobList(Protocol):
    """Lists training jobs. Only ``reconcile`` may do that, so only it concludes that one is gone."""

    def is_listed(self, training_job_name: str, *, created: datetime) -> bool:
        """Tell whether SageMaker lists it among those created around that time. Raises UnavailableError."""


class TrainingJobReader(Protocol):
    """SageMaker, for training jobs that trainmaster does not know. Every call may raise UnavailableError."""

    def described(self, training_job_name: str) -> Described | None: ...

    def in_progress(self, *, limit: int) -> tuple[Listed, ...]:
        """List running training jobs, the newest first; a part if there are many."""

    def tags(self, training_job_arn: str) -> dict[str, str]: ...


class PlanReader(Protocol):
    """Describes training plans."""

    def plan(self, arn: str) -> PlanSeen | None:
        """Return a plan as SageMaker describes it; None if it knows no such plan.

        Raises UnavailableError.
        """


class LogReader(Protocol):
    def tail(self, training_job_name: str) -> tuple[str, ...]:
        """Return the last lines its hosts logged, oldest first; empty if there are none. Never raises."""


class CheckpointReader(Protocol):
    def newest(self, uri: str) -> Newest:
        """Find the newest checkpoint below an S3 URI. Raises UnavailableError."""


class Notifier(Protocol):
    def tell(self, kind: str, detail: Mapping[str, Any]) -> None:
        """Send an event to its subscribers, possibly more than once. Raises UnavailableError."""


class AlarmReader(Protocol):
    """Reads alarms. Every call may raise UnavailableError."""

    def reading(self, alarm_name: str) -> AlarmReading | None:
        """Read one alarm; None if there is no such alarm."""

    def readings(self, prefix: str) -> Mapping[str, AlarmReading]:
        """Read all alarms with this prefix, by name."""


class MetricReader(Protocol):
    def have_data(self, hosts: Sequence[str], *, since: datetime, until: datetime) -> Mapping[str, bool]:
        """Tell whether each host has published a figure about its GPUs in that time, in one call.

        A host that CloudWatch gave no complete answer about is missing. Raises UnavailableError.

        Args:
            hosts: Values of dimension Host; at most ``measurements.MOST_HOSTS``.
            since: UTC.
            until: UTC, later.
        """


class AlarmKeeper(Protocol):
    """Creates and deletes alarms. Every call may raise UnavailableError."""

    def put(self, alarms: Sequence[Alarm]) -> None:
        """Create or replace each alarm, in this order. Raises AlarmQuotaError and AlarmRefusedError."""

    def delete(self, names: Sequence[str]) -> None:
        """Delete in this order, a composite before its parts; alarms that do not exist are skipped."""


class Mailer(Protocol):
    def mail(self, subject: str, text: str, attributes: Mapping[str, str]) -> None:
        """Mail all subscribers whose filters match the attributes. Raises UnavailableError."""


class WakeUps(Protocol):
    def send(self, pools: Iterable[str], *, hops: int = 0) -> None:
        """Wake the scheduler for these pools.

        Args:
            pools: Names of pools, or ``UNMANAGED``.
            hops: Length of the chain of passes, see ``chains.hops_of_next``.
        """


class Turns(Protocol):
    """Shares the account's rate of each SageMaker operation among all functions of the stack."""

    def wait_for(self, operation: str, *, most: timedelta) -> bool:
        """Wait for our turn to call; return False at once if that would take longer than ``most``."""

    def throttled(self, operation: str) -> None:
        """Note that AWS throttled a call of the operation, so that all functions call it less often."""

    def accepted(self, operation: str) -> None:
        """Note that AWS accepted a call of the operation."""


class FolderRegister(Protocol):
    """Remembers which jobs last named a folder in S3; each call may raise UnavailableError.

    It serves only warnings, so whatever is lost costs a warning.
    """

    def near(self, folders: Iterable[JobFolder]) -> tuple[JobFolder, ...]:
        """Return folders of jobs that may overlap these, the newest first within a folder; reads are bounded.

        Ended jobs may be among them, and folders that do not overlap: the caller compares.
        """

    def note(self, folders: Iterable[JobFolder], *, near: Iterable[JobFolder], at: datetime) -> None:
        """Remember the folders of a submitted job, beside those of the jobs that ``near`` returned."""
