"""Descriptions of a job's attempts, as SageMaker gives them."""

from typing import Any

from botocore.exceptions import ClientError

from trainmaster_client.hooks.job_description import Description
from trainmaster_client.jobs.job_views import JobView
from trainmaster_client.jobs.queued_jobs import RecentlyUsed

_ENDED = frozenset({"Completed", "Failed", "Stopped"})
_NOT_THERE = frozenset({"ValidationException", "ResourceNotFound"})
"""Describe's codes for a name that it does not know. Source: SageMaker API reference, Common Errors."""


class AttemptDescriptions:
    """Asks SageMaker for descriptions of attempts; those of ended attempts are kept, and asked for once."""

    def __init__(self) -> None:
        self._over = RecentlyUsed[Description]()

    def of(self, job: JobView, client: Any) -> dict[int, Description]:  # noqa: ANN401  boto3's
        """Describe each attempt, by its number; those that SageMaker never had, or has no more, are left out.

        Args:
            job: With its attempts. One that SageMaker did not confirm may be a stranger's training job.
            client: For SageMaker, without our handlers. Its errors are raised as they are.
        """
        names = {
            attempt.number: attempt.training_job_name for attempt in job.attempts if attempt.training_job_arn
        }
        answers = {number: self._description(name, client) for number, name in names.items()}
        return {number: description for number, description in answers.items() if description is not None}

    def _description(self, name: str, client: Any) -> Description | None:  # noqa: ANN401  boto3's
        over = self._over.get(name)
        if over is not None:
            return over
        try:
            answer: Description = client.describe_training_job(TrainingJobName=name)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return None
            raise
        if answer["TrainingJobStatus"] in _ENDED:
            self._over.keep(name, answer)
        return answer
