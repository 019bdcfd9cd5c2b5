"""The operator: Airflow's own for SageMaker, with the queue in SageMaker's place."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from datetime import timedelta
from functools import cached_property
from typing import Any, NoReturn

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator

from trainmaster_client.airflow.training_trigger import (
    UNKNOWN,
    QueueConnection,
    TrainmasterTrainingTrigger,
    cancel,
    job_or_array_named,
)
from trainmaster_client.api import Document, field_problem
from trainmaster_client.errors import (
    ConflictError,
    ForbiddenError,
    GatewayRefusedError,
    InvalidOptionsError,
    InvalidRequestError,
    NotFoundError,
    PolicyViolationError,
    TrainmasterClientError,
)
from trainmaster_client.hooks.array_calls import WantedTasks, wanting
from trainmaster_client.hooks.botocore_events import plain_client
from trainmaster_client.hooks.training_job_calls import QueueHooks
from trainmaster_client.jobs.array_requests import ArrayWish, GivenValues, plain_text
from trainmaster_client.jobs.array_views import is_about_array
from trainmaster_client.jobs.array_watch import ArrayLooks, watched_array
from trainmaster_client.jobs.job_conditions import with_conditions
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS
from trainmaster_client.jobs.progress import ExpiryNotice, Watch
from trainmaster_client.jobs.shared_looks import looks_at
from trainmaster_client.jobs.task_jobs import NextStep, TaskRun, next_step, tagged
from trainmaster_client.logs.joined_attempts import LogTail

LATE_LOOKS = 3
"""Looks at lines that CloudWatch shows after the end."""
_STOPPED_BY_USER = "stopped-by-user"


class TrainmasterTrainingOperator(SageMakerTrainingOperator):  # type: ignore[misc]  # Airflow has no types here
    """``SageMakerTrainingOperator`` through trainmaster's queue, with the same arguments and the same XCom.

    The task waits while its job waits, is preempted and comes back, and ends with it: completed, or failed
    with SageMaker's and the queue's reason. What was stopped by a user is not retried.

    A job carries the tag ``airflow-task``, which says whose it is. A try that finds a job of its own task
    attaches to it: an unfinished one always, a completed one until the task is cleared. So a retry submits
    only after a job that failed or was stopped, and each try at most one.

    Args:
        config: A CreateTrainingJob request.
        api_url: Else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``. Templated.
        after: Jobs that it waits for, by name or as ``afterany:NAME``: the tasks that submit those need not
            wait for their ends. Templated.
        array: Indices, such as ``0-63%8``: the task is an array of jobs, waited for as one. Templated.
        values: Hyperparameters of the array's jobs; without ``array`` one job a row. Templated.
        cancel_on_kill: Cancel the job when Airflow kills the task. A worker that is shut down does that, too.
        options: Those of ``SageMakerTrainingOperator``. ``action_if_job_exists`` is about jobs of others and
            the task's own that are of no more use: ``timestamp`` takes another name, the same at each try;
            ``fail`` fails. ``max_ingestion_time`` counts the waiting, too; ``max_attempts`` has no effect.
    """

    template_fields: Sequence[str] = (
        *SageMakerTrainingOperator.template_fields,
        "api_url",
        "after",
        "array",
        "values",
    )

    def __init__(
        self,
        *,
        api_url: str | None = None,
        after: str | Sequence[str] | None = None,
        array: str | None = None,
        values: GivenValues | None = None,
        cancel_on_kill: bool = True,
        **options: Any,  # noqa: ANN401  Airflow's
    ) -> None:
        super().__init__(**options)
        self.api_url, self.after = api_url, after
        self.array, self.values = array, values
        self.cancel_on_kill = cancel_on_kill
        self._claimed: tuple[TaskRun, str] | None = None

    @cached_property
    def training_queue(self) -> QueueHooks:
        """Register the queue's hooks, so that the client of ``hook`` describes jobs of the queue."""
        queue = self._connection(self.api_url).queue()
        queue.register(self.hook.get_conn().meta.events)
        return queue

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any]:
        self.preprocess_config()
        self.hook.check_training_config(self.config)
        task = context["ti"]
        name = self._claim(run_of(task, retries=self.retries or 0), tries=task.try_number)
        if not self.wait_for_completion:
            return self._described(name)
        if self.deferrable and not self._look(name).is_final:
            self._defer(name)
        return self._result(name, self._watched(name))

    def execute_complete(
        self,
        context: Mapping[str, Any],  # noqa: ARG002  Airflow's
        event: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        if event is None or event["status"] == UNKNOWN:
            problem = "" if event is None else f": {event['message']}"
            raise AirflowException(f"The trigger could not see the end of the job{problem}")
        name = event["job_name"]
        return self._result(name, self._look(name))

    def on_kill(self) -> None:
        if not self.cancel_on_kill or self._claimed is None:
            return
        run, name = self._claimed
        try:
            if (
                self._next_step(run, name) is NextStep.ATTACH
            ):  # else it is somebody else's, or was not submitted
                cancel(self.training_queue, name)
        except TrainmasterClientError as error:
            self.log.warning("%s was not cancelled: %s", name, error)

    def _claim(self, run: TaskRun, *, tries: int) -> str:
        """Submit or find the task's job, and return its name. Each try submitted at most one job."""
        wished = self.config["TrainingJobName"]
        for number in range(tries + 1 if self.check_if_job_exists else 1):
            name = run.job_name(wished, number)
            step = self._next_step(run, name)
            if step is NextStep.SUBMIT:
                step = self._submit(run, name)
            self.log.info("%s is the name of a job that is %s.", name, step)
            if step is NextStep.ATTACH:
                return name
            if self.action_if_job_exists == "fail":
                break
        raise AirflowException(
            f"A SageMaker job with name {name} already exists: it is {step}. Use another TrainingJobName"
            + (", or action_if_job_exists='timestamp'." if self.action_if_job_exists == "fail" else ".")
        )

    def _next_step(self, run: TaskRun, name: str) -> NextStep:
        try:
            document, request = self._found(name)
        except NotFoundError:
            return NextStep.SUBMIT
        except ForbiddenError as error:
            if isinstance(error, GatewayRefusedError):
                raise
            return NextStep.GIVE_WAY
        return next_step(run, name, job_view(document), request)

    def _found(self, name: str) -> tuple[Document, Document]:
        """Return the job or array with this name, and its request. Raises NotFoundError."""
        queue = self.training_queue
        try:
            document = queue.api.job(name, estimate=False, request=True)
        except NotFoundError as error:
            if not is_about_array(error):
                raise
            array = queue.api.array(name)
            queue.arrays.submitted(array, {})
            return array, queue.arrays.request(name)
        queue.queued.submitted(document)  # else the hooks keep that it is not there for seconds
        return document, document.get("request") or {}

    def _submit(self, run: TaskRun, name: str) -> NextStep:
        """Submit the job and return what is to be done with the name then.

        Raises AirflowFailException where the queue refuses the request.
        """
        if self.check_if_job_exists and self._check_if_job_exists(name, self.hook.describe_training_job):
            return self._taken(run, name)
        self._claimed = run, name
        try:
            request = with_conditions({**self.config, "TrainingJobName": name}, self.after)
            with self._as_array():
                answer = self.training_queue.submit(tagged(request, run))
        except ConflictError:
            return self._taken(run, name)
        except (InvalidOptionsError, InvalidRequestError, PolicyViolationError) as error:
            raise AirflowFailException(str(error)) from error
        for warning in answer.get("warnings") or ():
            self.log.warning("%s: %s", name, field_problem(warning))
        return NextStep.ATTACH

    def _as_array(self) -> AbstractContextManager[None]:
        """Turn what is submitted in the block into an array, if the task is one."""
        wish = ArrayWish(tasks=self.array, values=self.values)
        return nullcontext() if wish == ArrayWish() else wanting(WantedTasks(wish=wish, encode=plain_text))

    def _taken(self, run: TaskRun, name: str) -> NextStep:
        """Choose the next step for a name that was free before; another worker may have taken it since."""
        step = self._next_step(run, name)
        return NextStep.GIVE_WAY if step is NextStep.SUBMIT else step

    def _look(self, name: str) -> JobView:
        return job_view(job_or_array_named(self.training_queue, name))

    def _watched(self, name: str) -> JobView:
        """Watch the job to its end and return the last view; changes go to the log of the task.

        With ``print_log`` the job's output goes there too.
        """
        first_poll, expiry = max(FIRST_POLL_SECONDS, self.check_interval), ExpiryNotice()
        tail = LogTail(self._logs_client, expiry=expiry) if self.print_log else None
        try:
            with looks_at(self.training_queue.api, name) as looks:
                return Watch(
                    look=lambda: job_view(looks.look()),
                    say=self.log.info,
                    further=(lambda: tail.lines(looks.document)) if tail else list,
                    late_looks=LATE_LOOKS if tail else 0,
                    first_poll=first_poll,
                    age=looks.age,
                    timeout=self.max_ingestion_time,
                    expiry=expiry,
                ).until_final()
        except NotFoundError as error:
            if not is_about_array(error):
                raise
        array = ArrayLooks(self.training_queue.api, name)
        watched_array(
            array, say=self.log.info, first_poll=first_poll, timeout=self.max_ingestion_time
        ).until_final()
        return array.final_view()

    def _logs_client(self) -> Any:  # noqa: ANN401  boto3's
        logs = self.hook.logs_hook
        endpoint_url = logs.conn_config.get_service_endpoint_url("logs")
        return plain_client(logs.get_session(self.hook.region_name), "logs", endpoint_url=endpoint_url)

    def _defer(self, name: str) -> NoReturn:
        seconds = self.max_ingestion_time
        self.defer(
            trigger=TrainmasterTrainingTrigger(
                name,
                self.check_interval,
                cancel_on_kill=self.cancel_on_kill,
                **asdict(self._connection(self.training_queue.api.api_url)),
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=seconds) if seconds else self.execution_timeout,
        )
        raise AssertionError

    def _result(self, name: str, job: JobView) -> dict[str, Any]:
        if not job.is_final:
            limit = f"max_ingestion_time={self.max_ingestion_time}"
            raise AirflowException(f"{name} is {job.state} after {limit}. It stays in the queue.")
        described = self._described(name)
        if job.state == "failed":
            raise AirflowException(f"{name} failed: {described['Training'].get('FailureReason') or job.why}")
        if job.state == "stopped":
            kind = AirflowFailException if _is_by_user(job) else AirflowException
            raise kind(f"{name} was stopped: {job.why}")
        return described

    def _described(self, name: str) -> dict[str, Any]:
        """Return the description in the form of Airflow's operator; its OpenLineage facets are made of it."""
        description: dict[str, Any] = self.serialize_result(name)
        return description

    def _connection(self, api_url: str | None) -> QueueConnection:
        return QueueConnection(
            api_url=api_url,
            aws_conn_id=self.aws_conn_id,
            region_name=self.region_name,
            verify=self.verify,
            botocore_config=self.botocore_config,
        )


def run_of(task: Any, *, retries: int) -> TaskRun:  # noqa: ANN401  Airflow's task instance
    """Identify the run; when a task is cleared, Airflow raises ``max_tries`` by the tries that were."""
    return TaskRun(
        dag_id=task.dag_id,
        run_id=task.run_id,
        task_id=task.task_id,
        map_index=task.map_index,
        cleared_tries=max(0, task.max_tries - retries),
    )


def _is_by_user(job: JobView) -> bool:
    return job.reason is not None and job.reason.code == _STOPPED_BY_USER
