"""Wait for a job of the queue in Airflow's triggerer, and find the queue that a connection names."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from airflow.providers.amazon.aws.hooks.sagemaker import SageMakerHook
from airflow.triggers.base import BaseTrigger, TriggerEvent

from trainmaster_client.api import Document
from trainmaster_client.errors import ConflictError, NotFoundError, TrainmasterClientError
from trainmaster_client.hooks.training_job_calls import QueueHooks, hooks_of
from trainmaster_client.jobs.array_views import is_about_array, job_or_array
from trainmaster_client.jobs.array_watch import ArrayLooks, watched_array
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS
from trainmaster_client.jobs.progress import Watch, advance
from trainmaster_client.jobs.shared_looks import JobLooks, looks_at

UNKNOWN = "unknown"
"""The status of an event about a job whose end could not be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConnection:
    """Name where the queue is and who asks it, in plain values that go from process to process."""

    api_url: str | None
    """Address of the API; None takes it from the environment or the SSM parameter."""
    aws_conn_id: str | None
    region_name: str | None
    verify: bool | str | None
    botocore_config: dict[str, Any] | None

    def sagemaker(self) -> Any:  # noqa: ANN401  Airflow has no types here
        return SageMakerHook(
            aws_conn_id=self.aws_conn_id,
            region_name=self.region_name,
            verify=self.verify,
            config=self.botocore_config,
        )

    def queue(self) -> QueueHooks:
        """Signs with the session of the Airflow connection. Raises what ``hooks_of`` raises."""
        hook = self.sagemaker()
        return hooks_of(hook.get_session(region_name=hook.region_name), api_url=self.api_url)


class TrainmasterTrainingTrigger(BaseTrigger):  # type: ignore[misc]  # Airflow has no types here
    """Fires when a job of the queue has ended, however often it waits or is preempted until then.

    Any number of triggerers may run it, one after another or at once: it only looks.

    Args:
        job_name: As it was submitted.
        check_interval: Seconds between two looks, up to a fifth less, at least 1; up to 60 while the job is
            far from its turn.
        cancel_on_kill: Cancel the job when somebody fails or clears the deferred task. Airflow asks triggers
            for that since 3.3; before, the job stays, and a task that was cleared attaches to it.
        connection: The values of a QueueConnection.
    """

    def __init__(
        self,
        job_name: str,
        check_interval: float = 30,
        *,
        cancel_on_kill: bool = True,
        **connection: Any,  # noqa: ANN401  of several types
    ) -> None:
        super().__init__()
        self.job_name = job_name
        self.check_interval = check_interval
        self.cancel_on_kill = cancel_on_kill
        self.connection = QueueConnection(**connection)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        own = {
            "job_name": self.job_name,
            "check_interval": self.check_interval,
            "cancel_on_kill": self.cancel_on_kill,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", own | asdict(self.connection)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            job = await self._last_view()
        except TrainmasterClientError as error:
            yield self._event(UNKNOWN, str(error))
        else:
            yield self._event(job.state, job.why)

    async def on_kill(self) -> None:
        if self.cancel_on_kill:
            await asyncio.to_thread(self._cancel)

    async def _last_view(self) -> JobView:
        """Watch the job to its end in threads, so that the event loop goes on."""
        queue = await asyncio.to_thread(self.connection.queue)
        first_poll = max(FIRST_POLL_SECONDS, self.check_interval)
        try:
            with looks_at(queue.api, self.job_name) as looks:
                look = partial(_look, looks)
                return await _followed(
                    Watch(look=look, say=self.log.info, first_poll=first_poll, age=looks.age)
                )
        except NotFoundError as error:
            if not is_about_array(error):
                raise
        array = ArrayLooks(queue.api, self.job_name)
        await _followed(watched_array(array, say=self.log.info, first_poll=first_poll))
        return array.final_view()

    def _cancel(self) -> None:
        cancel(self.connection.queue(), self.job_name)

    def _event(self, status: str, message: str) -> TriggerEvent:
        return TriggerEvent({"status": status, "job_name": self.job_name, "message": message})


async def _followed(watch: Watch) -> JobView:
    """Follow a watch to its end, with each look in a thread."""
    steps = watch.steps()
    while True:
        step = await asyncio.to_thread(advance, steps)
        if isinstance(step, JobView):
            return step
        await asyncio.sleep(step)


def _look(looks: JobLooks) -> JobView:
    return job_view(looks.look())


def job_or_array_named(queue: QueueHooks, name: str) -> Document:
    """Read the job or array with this name, without an estimate. Raises what the API client raises."""
    return job_or_array(lambda: queue.api.job(name, estimate=False), lambda: queue.api.array(name))


def cancel(queue: QueueHooks, job_name: str) -> None:
    """Cancel a job or an array; one that has ended, or was never submitted, is no error."""
    try:
        job_or_array(lambda: queue.api.cancel(job_name), lambda: queue.api.cancel_array(job_name))
    except (ConflictError, NotFoundError):
        return
