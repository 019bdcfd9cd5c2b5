"""The training jobs of an account as a history, for accounts that have no stack yet."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster_client.errors import TrainingJobsUnreadableError
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.histories.exported_history import exported_history
from trainmaster_client.simulate.histories.line_problems import count_of
from trainmaster_client.simulate.histories.training_jobs import TrainingJob, exported_jobs, not_said
from trainmaster_client.simulate.sources.account_export import Period
from trainmaster_client.simulate.sources.reading_progress import Progress, silent
from trainmaster_client.simulate.sources.sagemaker_reader import (
    DESCRIBE_PER_SECOND,
    Cache,
    SageMakerClient,
    TrainingJobReader,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SageMakerReading:
    """The way training jobs are read."""

    team_tag: str | None = None
    """The key of the tag whose value is the team."""
    cache: Path | None = None
    """File that keeps jobs that have ended, for the next call; ``usual_cache`` has a place. None keeps
    none."""
    announce: Callable[[str], None] = lambda _: None
    """Called with one sentence on how long it will take, before the jobs are read."""
    progress: Progress = silent
    """Called with the jobs that are read, and of how many."""
    pause: Callable[[float], None] = time.sleep
    """Waits that many seconds."""
    clock: Callable[[], float] = time.monotonic
    """Seconds, never back."""


def history_from_sagemaker(
    client: SageMakerClient, period: Period, reading: SageMakerReading | None = None
) -> History:
    """Read every training job of a period, with the credentials and the region of boto3's client.

    Raises:
        TrainingJobsUnreadableError: SageMaker does not answer, or not to this caller.
        InvalidArgumentError: There is no job to replay.
    """
    how = reading or SageMakerReading()
    kept = Cache(path=how.cache)
    reader = TrainingJobReader(client=client, cache=kept, pause=how.pause, clock=how.clock)
    listed = reader.listed(period, how.progress)
    known = {arn: job for arn, job in kept.read().items() if arn in listed}
    how.announce(_duration(len(listed), known=len(known)))
    jobs: list[TrainingJob] = []
    for number, job in enumerate(reader.read(listed, known), start=1):
        jobs += [] if job is None else [job]
        how.progress(number, len(listed))
    _check_tags(jobs, how.team_tag)
    source = f"SageMaker{_account(jobs)}, {period}"
    history = exported_history(
        exported_jobs(jobs, team_tag=how.team_tag), source=source, read_at=period.until, begins=period.since
    )
    gone = f"{count_of(reader.deleted, 'training job')} deleted while they were read: left out."
    sentences = (*not_said(jobs, team_tag=how.team_tag), *([gone] if reader.deleted else []))
    return replace(history, not_known=(*sentences, *history.not_known))


def _duration(listed: int, *, known: int) -> str:
    minutes = math.ceil((listed - known) / DESCRIBE_PER_SECOND / 60)
    kept = f", {known:,} of them were read before" if known else ""
    takes = f"about {count_of(minutes, 'minute')}" if minutes > 1 else "less than a minute"
    return f"{count_of(listed, 'training job')} to read{kept}: {takes}."


def _account(jobs: list[TrainingJob]) -> str:
    """Return account and region of an ARN: ``arn:aws:sagemaker:eu-west-1:111122223333:training-job/name``."""
    if not jobs:
        return ""
    _, _, _, region, account, *_ = jobs[0].arn.split(":")
    return f" of account {account} in {region}"


def _check_tags(jobs: list[TrainingJob], team_tag: str | None) -> None:
    """Refuse to go on without the tags that the teams are to be read from."""
    if team_tag is not None and any(job.tags is None for job in jobs):
        why = f"the teams are to be read from the tag {team_tag}."
        raise TrainingJobsUnreadableError("ListTags", why=why, is_denied=True)
