"""Call SageMaker with requests as its model wants them, and tell errors apart by code, twice by text."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ParamValidationError,
)

from trainmaster.adapters.launcher_sessions import LauncherSessions
from trainmaster.adapters.sagemaker_answers import (
    in_milliseconds,
    observation_of,
    plan_of,
    printable,
    request_of,
)
from trainmaster.adapters.sagemaker_refusals import (
    DENIED,
    NO_KEYS,
    NOT_SENT,
    UNKNOWN_JOB,
    code_of,
    create_error,
    is_missing,
    unavailable,
)
from trainmaster.adapters.turn_taking import TurnTaking
from trainmaster.core.errors import (
    LauncherRefusedError,
    OutcomeUnknownError,
    StopDeniedError,
    TrainingRefusedError,
    UnavailableError,
    UnreachableError,
)
from trainmaster.core.jobs.instances import plan_name
from trainmaster.core.jobs.observations import Described, Listed, Observation
from trainmaster.core.policy.plan_windows import PlanSeen
from trainmaster.core.request.request import Launcher

LEAN = ("create_training_job", "stop_training_job")
"""Methods of the client whose requests and answers hold only texts and numbers."""
PAGES = 4
"""Pages of ListTrainingJobs in one look, of 100 each: the lowest reported quota is 2 calls a second."""
PAGES_OF_A_TIME = 20
"""Pages read to find one training job, which is rare: a page may be empty although more follow."""
AROUND = timedelta(minutes=15)
"""Longest time between a claim and the creation of its training job, in either direction."""
_RUNNING = {
    "StatusEquals": "InProgress",
    "SortBy": "CreationTime",
    "SortOrder": "Descending",
    "MaxResults": 100,
}


class SageMakerTraining:
    """Implements TrainingApi, TrainingJobReader and PlanReader.

    Without ``calls`` each call is made once, at once.

    ``launchers`` is needed where teams have launcher roles.
    """

    def __init__(
        self, client: Any, *, calls: TurnTaking | None = None, launchers: LauncherSessions | None = None
    ) -> None:
        self._client = client
        self._calls = calls or TurnTaking()
        self._launchers = launchers

    def create(self, request: Mapping[str, Any], *, launcher: Launcher | None = None) -> str:
        """Create the training job and return its ARN; the claim has already waited for the call's turn."""
        try:
            answer = self._calls.make(
                "CreateTrainingJob",
                lambda: self._client_of(launcher).create_training_job(**request),
                has_turn=True,
            )
        except ParamValidationError as error:
            raise TrainingRefusedError(printable(str(error)), code=NOT_SENT) from error
        except ClientError as error:
            if launcher and self._launchers and code_of(error) in DENIED | NO_KEYS:
                self._launchers.forget(launcher)
            raise create_error(error, request) from error
        except (ConnectTimeoutError, EndpointConnectionError) as error:
            raise UnreachableError("SageMaker could not be reached") from error
        except BotoCoreError as error:
            raise OutcomeUnknownError("SageMaker did not answer CreateTrainingJob") from error
        arn: str = answer["TrainingJobArn"]
        return arn

    def _client_of(self, launcher: Launcher | None) -> Any:
        if launcher is None:
            return self._client
        if self._launchers is None:
            raise LauncherRefusedError(f"this function starts nothing as {launcher.role_arn}")
        return self._launchers.client(launcher)

    def describe(self, training_job_name: str) -> Observation | None:
        answer = self._describe(training_job_name)
        return None if answer is None else observation_of(answer)

    def described(self, training_job_name: str) -> Described | None:
        answer = self._describe(training_job_name)
        if answer is None:
            return None
        return Described(
            observation=observation_of(answer),
            request=request_of(answer),
            created_at=in_milliseconds(answer["CreationTime"]),
            tuning_job_arn=answer.get("TuningJobArn"),
        )

    def _describe(self, training_job_name: str) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = self._calls.make(
                "DescribeTrainingJob",
                lambda: self._client.describe_training_job(TrainingJobName=training_job_name),
            )
        except ClientError as error:
            if is_missing(error):
                return None
            raise unavailable(error, "DescribeTrainingJob") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer DescribeTrainingJob") from error
        return answer

    def plan(self, arn: str) -> PlanSeen | None:
        operation = "DescribeTrainingPlan"
        try:
            answer: dict[str, Any] = self._calls.make(
                operation, lambda: self._client.describe_training_plan(TrainingPlanName=plan_name(arn))
            )
        except ClientError as error:
            if is_missing(error):
                return None
            raise unavailable(error, operation) from error
        except BotoCoreError as error:
            raise UnavailableError(f"SageMaker did not answer {operation}") from error
        return plan_of(answer)

    def in_progress(self, *, limit: int) -> tuple[Listed, ...]:
        """List running jobs. SageMaker filters pages after cutting them, so one of 100 may show none."""
        try:
            pages = list(
                islice(
                    self._calls.pages("ListTrainingJobs", self._client.list_training_jobs, **_RUNNING), PAGES
                )
            )
        except ClientError as error:
            raise unavailable(error, "ListTrainingJobs") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer ListTrainingJobs") from error
        summaries = (summary for page in pages for summary in page["TrainingJobSummaries"])
        return tuple(
            Listed(training_job_name=job["TrainingJobName"], created_at=in_milliseconds(job["CreationTime"]))
            for job in islice(summaries, limit)
        )

    def is_listed(self, training_job_name: str, *, created: datetime) -> bool:
        """Tell whether the job is listed; True also if so many were created then that pages remain unread."""
        listing = self._calls.pages(
            "ListTrainingJobs",
            self._client.list_training_jobs,
            NameContains=training_job_name,
            CreationTimeAfter=created - AROUND,
            CreationTimeBefore=created + AROUND,
            MaxResults=100,
        )
        try:
            pages = list(islice(listing, PAGES_OF_A_TIME))
        except ClientError as error:
            raise unavailable(error, "ListTrainingJobs") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer ListTrainingJobs") from error
        names = [summary["TrainingJobName"] for page in pages for summary in page["TrainingJobSummaries"]]
        return training_job_name in names or bool(pages[-1].get("NextToken"))

    def tags(self, training_job_arn: str) -> dict[str, str]:
        tags: dict[str, str] = {}
        try:
            for page in self._calls.pages("ListTags", self._client.list_tags, ResourceArn=training_job_arn):
                tags |= {tag["Key"]: tag["Value"] for tag in page["Tags"]}
        except ClientError as error:
            raise unavailable(error, "ListTags") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer ListTags") from error
        return tags

    def stop(self, training_job_name: str) -> None:
        try:
            self._calls.make(
                "StopTrainingJob", lambda: self._client.stop_training_job(TrainingJobName=training_job_name)
            )
        except ClientError as error:
            if code_of(error) in DENIED:
                raise StopDeniedError("the stack has no right to stop it (StopTrainingJob)") from error
            if code_of(error) not in UNKNOWN_JOB:
                raise unavailable(error, "StopTrainingJob") from error
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer StopTrainingJob") from error

    def keep_alive(self, training_job_name: str, period: timedelta) -> bool:
        resources = {"KeepAlivePeriodInSeconds": int(period.total_seconds())}
        try:
            self._calls.make(
                "UpdateTrainingJob",
                lambda: self._client.update_training_job(
                    TrainingJobName=training_job_name, ResourceConfig=resources
                ),
            )
        except ClientError as error:
            if code_of(error) not in UNKNOWN_JOB:
                raise unavailable(error, "UpdateTrainingJob") from error
            return False
        except BotoCoreError as error:
            raise UnavailableError("SageMaker did not answer UpdateTrainingJob") from error
        return True
