"""AWS beside the table, as small protocols."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from trainmaster.core.jobs.observations import Described, Listed, Newest, Observation
from trainmaster.core.monitoring.alarms import Alarm, AlarmReading
from trainmaster.core.request.request import Launcher
from trainmaster.core.submission.shared_folders import JobFolder

Clock = Callable[[], datetime]
"""Now, aware, UTC."""


class Beside(Protocol):
    """Does tasks beside each other, a few at once, and draws the next one when it can do it. None raises."""

    @property
    def hands(self) -> int:
        """How many at once."""

    def __call__(self, tasks: Iterable[Callable[[], object]]) -> None: ...


class TrainingApi(Protocol):
    """SageMaker. Every call may raise UnavailableError (for now)."""

    def create(self, request: Mapping[str, Any], *, launcher: Launcher | None = None) -> str:
        """The ARN. Called by a session of ``launcher``; None: by the stack itself.

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
        """Ask it to stop; one that is over already is fine."""

    def keep_alive(self, training_job_name: str, period: timedelta) -> bool:
        """How long its warm pool is kept from its end on; zero gives it up. False: it has none (any more)."""


class TrainingJobList(Protocol):
    """Only ``reconcile`` may list training jobs, so only it concludes that one is gone."""

    def is_listed(self, training_job_name: str, *, created: datetime) -> bool:
        """Whether SageMaker lists it among those created around that time. Raises UnavailableError."""


class TrainingJobReader(Protocol):
    """SageMaker, for jobs that are not known to us. Every call may raise UnavailableError."""

    def described(self, training_job_name: str) -> Described | None: ...

    def in_progress(self, *, limit: int) -> tuple[Listed, ...]:
        """Training jobs that run, the newest first; of a long list a part."""

    def tags(self, training_job_arn: str) -> dict[str, str]: ...


class LogReader(Protocol):
    def tail(self, training_job_name: str) -> tuple[str, ...]:
        """The last lines its hosts logged, the oldest first; empty where there are none. Never raises."""


class CheckpointReader(Protocol):
    def newest(self, uri: str) -> Newest:
        """Below an S3 URI. Raises UnavailableError."""


class Notifier(Protocol):
    def tell(self, kind: str, detail: Mapping[str, Any]) -> None:
        """Send an event to whoever listens; the same one may come twice. Raises UnavailableError."""


class AlarmReader(Protocol):
    """Every call may raise UnavailableError."""

    def reading(self, alarm_name: str) -> AlarmReading | None:
        """None: there is no such alarm."""

    def readings(self, prefix: str) -> Mapping[str, AlarmReading]:
        """Of all alarms whose names begin so, by name."""


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
    """Every call may raise UnavailableError."""

    def put(self, alarms: Sequence[Alarm]) -> None:
        """Make each or replace it, in this order. Raises AlarmQuotaError and AlarmRefusedError."""

    def delete(self, names: Sequence[str]) -> None:
        """In this order, a composite before its parts; those that are gone already are fine."""


class Mailer(Protocol):
    def mail(self, subject: str, text: str, attributes: Mapping[str, str]) -> None:
        """To everybody who has subscribed, filtered by the attributes. Raises UnavailableError."""


class WakeUps(Protocol):
    def send(self, pools: Iterable[str], *, hops: int = 0) -> None:
        """Wake the scheduler for these pools.

        Args:
            pools: By name, or ``UNMANAGED``.
            hops: As of ``chains.hops_of_next``.
        """


class Turns(Protocol):
    """The account's rate of each SageMaker operation, whoever of us calls it."""

    def wait_for(self, operation: str, *, most: timedelta) -> bool:
        """Wait until it is our turn to call; False, at once, where that would take longer than ``most``."""

    def throttled(self, operation: str) -> None:
        """AWS refused a call of it for its rate: all of us call it more rarely."""

    def accepted(self, operation: str) -> None:
        """AWS took one."""


class FolderRegister(Protocol):
    """Knows which jobs named a folder in S3 last; each call may raise UnavailableError.

    It serves warnings alone, so what is lost costs a warning.
    """

    def near(self, folders: Iterable[JobFolder]) -> tuple[JobFolder, ...]:
        """Folders of jobs that may meet one of these, of one folder the newest first; bounded in its reads.

        Jobs that have ended are among them, and others that do not meet: whoever asks compares.
        """

    def note(self, folders: Iterable[JobFolder], *, near: Iterable[JobFolder], at: datetime) -> None:
        """Remember the folders of a job that was submitted, beside those that were found ``near``."""
