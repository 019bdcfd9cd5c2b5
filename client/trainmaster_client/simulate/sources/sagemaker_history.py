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
    """How training jobs are read."""

    team_tag: str | None = None
    """The key of the tag whose value is the team."""
    cache: Path | None = None
    """Where jobs that have ended are kept, for the next call; ``usual_cache`` has a place. None: nowhere."""
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
    """Every training job that was there in a period, by the credentials of boto3's client, of one region.

    Raises:
        TrainingJobsUnreadableError: SageMaker does not answer, or not to this caller.
        InvalidArgumentError: There is no job to replay.
    """
    how = reading or SageMakerReading()
    kept = Cache(path=how.cache)
    reader = TrainingJobReader(client=client, cache=kept, pause=how.pause, clock=how.clock)
    listed = reader.listed(period, how.progress)
    known = {arn: one for arn, one in kept.read().items() if arn in listed}
    how.announce(_duration(len(listed), known=len(known)))
    found: list[TrainingJob] = []
    for number, one in enumerate(reader.read(listed, known), start=1):
        found += [] if one is None else [one]
        how.progress(number, len(listed))
    _check_tags(found, how.team_tag)
    source = f"SageMaker{_account(found)}, {period}"
    history = exported_history(
        exported_jobs(found, team_tag=how.team_tag), source=source, read_at=period.until, begins=period.since
    )
    gone = f"{count_of(reader.deleted, 'training job')} deleted while they were read: left out."
    said = (*not_said(found, team_tag=how.team_tag), *([gone] if reader.deleted else []))
    return replace(history, not_known=(*said, *history.not_known))


def _duration(listed: int, *, known: int) -> str:
    minutes = math.ceil((listed - known) / DESCRIBE_PER_SECOND / 60)
    kept = f", {known:,} of them were read before" if known else ""
    takes = f"about {count_of(minutes, 'minute')}" if minutes > 1 else "less than a minute"
    return f"{count_of(listed, 'training job')} to read{kept}: {takes}."


def _account(found: list[TrainingJob]) -> str:
    """From an ARN: ``arn:aws:sagemaker:eu-west-1:111122223333:training-job/name``."""
    if not found:
        return ""
    _, _, _, region, account, *_ = found[0].arn.split(":")
    return f" of account {account} in {region}"


def _check_tags(found: list[TrainingJob], team_tag: str | None) -> None:
    """Without them there are no teams, which were asked for."""
    if team_tag is not None and any(one.tags is None for one in found):
        why = f"the teams are to be read from the tag {team_tag}."
        raise TrainingJobsUnreadableError("ListTags", why=why, is_denied=True)
