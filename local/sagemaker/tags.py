"""AddTags, ListTags and DeleteTags on training jobs."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from local.sagemaker.admission import check_tags
from local.sagemaker.jobs import TrainingJob
from local.wire import AwsError

_MOST_TAGS = 50
"""Source: SageMaker service model, TagList."""


def as_map(tags: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags}


def as_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def added(job: TrainingJob, tags: list[dict[str, str]]) -> TrainingJob:
    complaint = check_tags(tags)
    if complaint is not None:
        raise AwsError("ValidationException", complaint)
    merged = {**job.tags, **as_map(tags)}
    if len(merged) > _MOST_TAGS:
        raise AwsError("ResourceLimitExceeded", f"A resource can have at most {_MOST_TAGS} tags")
    return replace(job, tags=merged)


def removed(job: TrainingJob, keys: Iterable[str]) -> TrainingJob:
    gone = set(keys)
    return replace(job, tags={key: value for key, value in job.tags.items() if key not in gone})
