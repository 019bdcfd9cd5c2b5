"""The SageMaker SDK v2 session whose ``fit()`` goes through trainmaster's queue.

The SDK prints that v2 is on the path of deprecation; ``SAGEMAKER_SUPPRESS_V2_WARNING=1`` silences it.
Without internet its telemetry waits for time-outs; to opt out, pass ``sagemaker_config={"SchemaVersion":
"1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import boto3
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.session import Session

from trainmaster_client.api import field_problem
from trainmaster_client.errors import NotFoundError, TrainmasterClientError
from trainmaster_client.hooks.botocore_events import like_the_default, plain_client
from trainmaster_client.hooks.training_job_calls import hooks_of
from trainmaster_client.jobs.array_views import array_view, is_about_array
from trainmaster_client.jobs.array_watch import ArrayLooks, watched_array
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS
from trainmaster_client.jobs.progress import ExpiryNotice, Progress, Watch
from trainmaster_client.jobs.queued_jobs import RecentlyUsed
from trainmaster_client.jobs.shared_looks import JobLooks, looks_at
from trainmaster_client.logs.joined_attempts import LogTail

_SDK_STATUS = {"completed": "Completed", "failed": "Failed", "stopped": "Stopped"}
"""Job state -> what the SDK calls it; any other state is InProgress."""
_WITH_LINES = frozenset({"All", "Training"})
_LATE_LOOKS = 5


class WaitInterruptedError(KeyboardInterrupt, Exception):
    """Ctrl-C in a wait.

    The SDK's telemetry around ``fit()`` returns in a ``finally``, which swallows a bare KeyboardInterrupt:
    code behind ``fit()`` would take the job for completed. An Exception it raises again.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"Interrupted while waiting for {name}, which is not affected.")


class QueueTrainingJobSession(Session):  # type: ignore[misc]  # the SDK has no types
    """A drop-in for ``sagemaker.Session``: training is queued, all else goes straight to SageMaker.

    ``fit(wait=False)`` returns when the job is in the queue. ``fit(wait=True)`` shows its place and why it
    waits, then each transition and what it prints, over all its attempts, and returns when it is completed; a
    job that failed or was stopped raises the SDK's UnexpectedStatusException. (The SDK alone only warns of a
    stopped job. One that was cancelled in the queue never ran, so code behind ``fit`` must not go on.)

    For an array (tag ``trainmaster:array``) it prints a line a change of its counts, and no logs.

    The session's SageMaker client has the hooks of ``trainmaster_client.hook``, so ``describe()``,
    ``stop()``, ``attach``, ``model_data`` and ``@remote`` functions see the job too. Other clients of its
    boto session train as they did; those for logs and metrics read jobs of the queue over all attempts.

    Args:
        boto_session: Its credentials sign the requests. None: one of its own, with the profile, region and
            credentials of boto3's default session, whose clients stay as they are.
        api_url: Else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``.
        poll_seconds: The first pause between two looks at a job; grows to 10 s while nothing happens, and to
            60 s far from its turn.
        options: Passed on to ``sagemaker.Session``.
    """

    def __init__(
        self,
        boto_session: boto3.Session | None = None,
        *,
        api_url: str | None = None,
        poll_seconds: float = FIRST_POLL_SECONDS,
        **options: Any,  # noqa: ANN401  the SDK's
    ) -> None:
        super().__init__(boto_session or like_the_default(), **options)
        self._hooks = hooks_of(self.boto_session, api_url=api_url)
        self._hooks.register(self.sagemaker_client.meta.events)
        self._hooks.register_readers(self.boto_session.events)
        self._poll_seconds = poll_seconds
        self._progress = RecentlyUsed[Progress]()

    def _intercept_create_request(
        self, request: dict[str, Any], create: Callable[[dict[str, Any]], Any], func_name: str | None = None
    ) -> Any:  # noqa: ANN401  the SDK's
        """Submit instead of creating, by a method private to the SDK that a contract test watches.

        Refusals keep this package's own types here.
        """
        if func_name != "train":
            return create(request)
        return self._submit(request)

    def wait_for_job(self, job: str, poll: float = 5) -> Any:  # noqa: ANN401  the SDK's
        """Wait until the job is final, through all its attempts.

        Returns:
            The last view of the job. For one that is not in the queue ``sagemaker.Session`` does it all.
        """
        return self._wait(job, otherwise=partial(super().wait_for_job, job, poll))

    def logs_for_job(
        self,
        job_name: str,
        wait: bool = False,  # noqa: FBT001, FBT002  the SDK's
        poll: float = 10,
        log_type: str = "All",
        timeout: float | None = None,
    ) -> Any:  # noqa: ANN401  the SDK's
        """Wait as ``wait_for_job`` does, with log lines unless ``log_type`` is "Rules" or "None".

        The SDK's own method answers if ``wait`` is false, and for jobs that are not in the queue.
        """
        direct = partial(super().logs_for_job, job_name, wait, poll, log_type, timeout)
        if not wait:
            return direct()
        return self._wait(job_name, otherwise=direct, timeout=timeout, has_lines=log_type in _WITH_LINES)

    def _submit(self, request: dict[str, Any]) -> None:
        answer = self._hooks.submit(request)
        for warning in answer.get("warnings") or ():
            _say(f"Warning: {field_problem(warning)}")
        if array := answer.get("array"):
            _say(f"Queued the array {array_view(array).line}")
            return
        job = job_view(answer.get("job") or {})
        _say(f"Queued {job.name}." if job.is_waiting else f"{job.name} is already there: {job.state}.")
        progress = Progress()
        self._progress.keep(str(job.name), progress)
        for line in progress.lines(job):
            _say(line)

    def _wait(
        self,
        name: str,
        *,
        otherwise: Callable[[], Any],
        timeout: float | None = None,
        has_lines: bool = False,
    ) -> Any:  # noqa: ANN401  the SDK's
        try:
            job = self._watched(name, timeout=timeout, has_lines=has_lines)
        except NotFoundError:
            return otherwise()
        except KeyboardInterrupt:
            _say_how_to_cancel(name)
            raise WaitInterruptedError(name) from None
        except TrainmasterClientError:
            _say_how_to_cancel(name)
            raise
        _raise_unless_completed(name, job)
        return job

    def _watched(self, name: str, *, timeout: float | None, has_lines: bool) -> JobView:
        """Watch a job, or an array, until it is final. Raises NotFoundError if the queue has neither."""
        try:
            with looks_at(self._hooks.api, name) as looks:
                return self._watch(name, looks, timeout=timeout, has_lines=has_lines).until_final()
        except NotFoundError as error:
            if not is_about_array(error):
                raise
        array = ArrayLooks(self._hooks.api, name)
        watched_array(array, say=_say, first_poll=self._poll_seconds, timeout=timeout).until_final()
        return array.final_view()

    def _watch(self, name: str, looks: JobLooks, *, timeout: float | None, has_lines: bool) -> Watch:
        expiry = ExpiryNotice()
        logs_client = partial(plain_client, self.boto_session, "logs")
        tail = LogTail(logs_client, expiry=expiry) if has_lines else None
        return Watch(
            look=lambda: job_view(looks.look()),
            say=_say,
            progress=self._progress.take(name) or Progress(),
            further=(lambda: tail.lines(looks.document)) if tail else list,
            late_looks=_LATE_LOOKS if tail else 0,
            first_poll=self._poll_seconds,
            age=looks.age,
            timeout=timeout,
            expiry=expiry,
        )


def _raise_unless_completed(name: str, job: JobView) -> None:
    status = _SDK_STATUS.get(job.state, "InProgress")
    if status != "Completed":
        raise UnexpectedStatusException(
            message=f"Error for Training job {name}: {status}. Reason: {job.why or '(No reason provided)'}",
            allowed_statuses=["Completed"],
            actual_status=status,
        )


def _say_how_to_cancel(name: str) -> None:
    _say(f"No longer waiting. {name} is not affected; to cancel it: trainmaster cancel {name}")


def _say(line: str) -> None:
    """Print a line where the SDK prints its own status lines."""
    print(line, flush=True)
