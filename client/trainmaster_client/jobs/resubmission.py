"""A job submitted again: the request that it had, under another name."""

import re
from datetime import datetime
from typing import Any

from trainmaster_client.api import ApiClient
from trainmaster_client.errors import InvalidArgumentError

LONGEST_NAME = 63
"""Characters. Source: SageMaker API reference, CreateTrainingJob, TrainingJobName."""
_STAMP = re.compile(r"-\d{8}-\d{6}$")
"""Matches the end of a name that an earlier resubmission wrote."""


def request_again(api: ApiClient, job: str, *, name: str | None, now: datetime) -> dict[str, Any]:
    """Read the request that a job was submitted with, and give it another name.

    Args:
        api: Asked for the job.
        job: Its name, or that of any of its attempts.
        name: The new name; None: the old one with the time, as in ``nightly-20261126-031500``.
        now: The time that makes the name, with a zone.

    Raises:
        NotFoundError: There is no such job.
        InvalidArgumentError: The queue has no request of it, or the new name is the old one.
    """
    document = api.job(job, estimate=False, request=True)
    request = document.get("request")
    if not isinstance(request, dict) or not request:
        raise InvalidArgumentError(
            f"The queue has no request of {job}: it came around the queue, or you may not read it.",
            hint="Submit a request of your own.",
        )
    old_name = str(document.get("name") or request.get("TrainingJobName") or job)
    if name == old_name:
        raise InvalidArgumentError(f"{name} is the name of the job itself.", hint="Give another name.")
    return {**request, "TrainingJobName": name or _stamped(old_name, now)}


def _stamped(name: str, now: datetime) -> str:
    stamp = now.strftime("-%Y%m%d-%H%M%S")
    base = _STAMP.sub("", name)[: LONGEST_NAME - len(stamp)].rstrip("-")
    return f"{base}{stamp}"
