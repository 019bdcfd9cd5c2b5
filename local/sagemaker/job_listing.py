"""ListTrainingJobs: pages cut first, status asked for afterwards."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from local.sagemaker.jobs import TrainingJob
from local.sagemaker.views import summary
from local.wire import AwsError

_DEFAULT_PAGE = 10
"""Source: SageMaker API as users report it; the model says only that the most is 100."""

_SORT_KEYS: Mapping[str, Callable[[TrainingJob], tuple[Any, ...]]] = {
    "CreationTime": lambda job: (job.created_at.timestamp(), job.name),
    "Name": lambda job: ("", job.name),
    "Status": lambda job: (job.primary.value, job.name),
}

_TIME_FILTERS: Mapping[str, Callable[[TrainingJob, datetime], bool]] = {
    "CreationTimeAfter": lambda job, instant: job.created_at > instant,
    "CreationTimeBefore": lambda job, instant: job.created_at < instant,
    "LastModifiedTimeAfter": lambda job, instant: job.modified_at > instant,
    "LastModifiedTimeBefore": lambda job, instant: job.modified_at < instant,
}


def page(jobs: Iterable[TrainingJob], params: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Answer with one page; jobs that come and go between pages are neither repeated nor hide others.

    Statuses are asked for after the page was cut, so that a page can be empty and have a successor.
    Without an order the newest come first. Source: SageMaker API reference, ListTrainingJobs, its note.
    """
    order = params.get("SortBy", "CreationTime")
    key = _SORT_KEYS[order]
    is_descending = params.get("SortOrder", "Descending") == "Descending"
    matching = sorted((job for job in jobs if _matches(job, params)), key=key, reverse=is_descending)
    if "NextToken" in params:
        last = _last_shown(params["NextToken"], order)
        matching = [job for job in matching if (key(job) < last if is_descending else key(job) > last)]
    size = params.get("MaxResults", _DEFAULT_PAGE)
    shown = matching[:size]
    answer: dict[str, Any] = {
        "TrainingJobSummaries": [
            shown_job
            for job in shown
            if _is_on_plan(job, params) and _has_status(shown_job := summary(job, now=now), params)
        ]
    }
    if len(matching) > size:
        answer["NextToken"] = _token(key(shown[-1]), order)
    return answer


def _matches(job: TrainingJob, params: Mapping[str, Any]) -> bool:
    return params.get("NameContains", "") in job.name and all(
        passes(job, params[name]) for name, passes in _TIME_FILTERS.items() if name in params
    )


def _is_on_plan(job: TrainingJob, params: Mapping[str, Any]) -> bool:
    return bool(params.get("TrainingPlanArnEquals", job.spec.plan_arn) == job.spec.plan_arn)


def _has_status(shown: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Tell whether the status matches, which is asked after the page was cut."""
    pool = shown.get("WarmPoolStatus", {}).get("Status")
    return bool(
        params.get("StatusEquals", shown["TrainingJobStatus"]) == shown["TrainingJobStatus"]
        and params.get("WarmPoolStatusEquals", pool) == pool
    )


def _token(last: tuple[Any, ...], order: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([order, *last]).encode()).decode()


def _last_shown(token: str, order: str) -> tuple[Any, ...]:
    """Return the sort key of the last job before this page. Only a token of the same order is valid."""
    try:
        match json.loads(base64.urlsafe_b64decode(token)):
            case [str() as kept, float() | str() as value, str() as name] if kept == order and isinstance(
                value, float
            ) == (order == "CreationTime"):
                return (value, name)
    except (binascii.Error, ValueError) as error:
        raise AwsError("ValidationException", "Invalid NextToken") from error
    raise AwsError("ValidationException", "Invalid NextToken")
