"""Reads for ``trainmaster advise`` how fast jobs trained: from SageMaker, the stack, reports of the bench."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.advice.assessments import Assessor
from trainmaster_client.advice.bench_reports import EXAMPLE, BenchReport, BenchRuns, bench_runs, read_report
from trainmaster_client.advice.measured_work import Run, run_of_description, run_of_speed
from trainmaster_client.advice.shapes import read_shapes
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


def runs_of_reports(texts: Iterable[str], row: str | None) -> BenchRuns:
    """Read the reports of ``--bench TYPE=COUNT,FILE``, and return the row that is compared.

    Raises:
        InvalidArgumentError: An option is no shape with a file, a file cannot be read or is no report, or the
            reports cannot be compared.
    """
    return bench_runs([_report(text) for text in texts], row=row)


def _report(text: str) -> BenchReport:
    shape_words, _, path = text.partition(",")
    if not path:
        raise InvalidArgumentError(
            f"--bench: {printable(text)!r} is not a shape and a file.", hint=f"Write {EXAMPLE}."
        )
    shapes = read_shapes(shape_words, where="--bench")
    if len(shapes) != 1:
        raise InvalidArgumentError(
            f"--bench: {printable(shape_words)!r} is not one shape.", hint=f"Write {EXAMPLE}."
        )
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgumentError(
            f"--bench: {printable(path)} cannot be read: {error.strerror}.", hint=f"Write {EXAMPLE}."
        ) from error
    return read_report(content, source=printable(path), shape=replace(shapes[0], subnet=None))


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
