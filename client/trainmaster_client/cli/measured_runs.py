"""Reads how fast named jobs trained from SageMaker, for ``trainmaster advise --measured``."""

from collections.abc import Callable, Iterable, Iterator

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.advice.assessments import Assessor
from trainmaster_client.advice.measured_work import Run, run_of_description, run_of_speed
from trainmaster_client.api import ApiClient
from trainmaster_client.cli.connection import aws_client
from trainmaster_client.cli.screen import say
from trainmaster_client.errors import ApiFailedError, InvalidArgumentError, MalformedViewError, Problem
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import job_view

_BUSY = Problem(
    status=503,
    title="Unavailable",
    detail="the table did not answer for the speeds of earlier runs; try again in a minute, or name jobs that"
    " trained the same model: --measured JOB",
)


def runs_of(api: ApiClient, jobs: Iterable[str], metric: str, *, report: Callable[[str], None]) -> list[Run]:
    """Return the runs of these jobs: each attempt that tells its speed; others are named and left out.

    Raises:
        InvalidArgumentError: Jobs were named, and none of them tells anything.
    """
    runs: list[Run] = []
    silent: list[str] = []
    for job in dict.fromkeys(jobs):
        report(job)
        attempts = list(_attempts(api, job, metric))
        runs += [run for run in attempts if isinstance(run, Run)]
        silent += [why for why in attempts if isinstance(why, str)]
        if not attempts:
            silent.append(f"{job} has not started yet")
    if silent and not runs:
        hint = "Name jobs whose MetricDefinitions have it, or another metric: --metric NAME."
        raise InvalidArgumentError(f"--measured tells no speed: {'; '.join(silent)}.", hint=hint)
    for why in silent:
        say(f"trainmaster: not compared: {why}.")
    return runs


def _attempts(api: ApiClient, job: str, metric: str) -> Iterator[Run | str]:
    names = [attempt.training_job_name for attempt in job_view(api.job(job, estimate=False)).attempts]
    client = aws_client("sagemaker")
    for name in filter(None, names):
        try:
            run = run_of_description(client.describe_training_job(TrainingJobName=name), metric)
        except ClientError as error:
            run = f"SageMaker does not describe it: {printable(error.response['Error'].get('Code'))}"
        except BotoCoreError as error:
            run = f"SageMaker cannot be asked: {printable(error)}"
        yield run if isinstance(run, Run) else f"{name}: {run}"


def kept_runs(assessor: Assessor) -> tuple[list[Run], str]:
    """Return what the stack has measured of the request's program, and the unit of it.

    Raises:
        InvalidArgumentError: It has measured nothing.
        ApiFailedError: It could not read what it has measured.
    """
    speeds = assessor.speeds()
    if speeds is None:
        raise ApiFailedError(_BUSY)
    if not speeds:
        raise InvalidArgumentError(
            "--by work compares shapes by the speed of earlier runs, and none of this program was measured.",
            hint="Name jobs that trained the same model: --measured JOB, several times. Or let some run: with"
            " MetricDefinitions for train:tok_s or samples_per_second each is measured after 5 minutes.",
        )
    try:
        return [run_of_speed(speed) for speed in speeds], f"{speeds[0]['unit']} a second"
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"measured_speeds: {type(error).__name__}: {error}") from error
