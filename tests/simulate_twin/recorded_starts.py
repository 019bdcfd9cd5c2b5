"""When a twin's scheduler started each attempt, by its journal alone."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

SCHEDULER = "/schedule"
"""How the principal of the function ends that alone may start training jobs."""
JOB_TAG, ATTEMPT_TAG = "trainmaster:job", "trainmaster:attempt"


class Start(NamedTuple):
    job: str
    attempt: int
    second: float
    """Since the beginning of the history, by the twin's clock."""


def creations(journal: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each CreateTrainingJob of the scheduler that the twin took, with the tags that say whose it is."""
    return [_creation(record) for record in journal if _is_start(record)]


def _is_start(record: Mapping[str, Any]) -> bool:
    return (
        record["kind"] == "call"
        and record["operation"] == "CreateTrainingJob"
        and record["error_code"] is None
        and str(record["principal"]).endswith(SCHEDULER)
    )


def _creation(record: Mapping[str, Any]) -> dict[str, Any]:
    tags = {one["Key"]: one["Value"] for one in record["params"]["Tags"]}
    return {
        "seq": record["seq"],
        "clock": record["clock"],
        "training_job": record["params"]["TrainingJobName"],
        "entry": tags[JOB_TAG],
        "attempt": int(tags[ATTEMPT_TAG]),
    }


def starts_of(created: Iterable[Mapping[str, Any]], *, begins: datetime) -> list[Start]:
    """Of each attempt the first; a job's first attempt has its name, and all have its entry."""
    names: dict[str, str] = {}
    found: dict[tuple[str, int], Start] = {}
    for one in created:
        name = names.setdefault(one["entry"], one["training_job"])
        second = (datetime.fromisoformat(one["clock"]) - begins).total_seconds()
        found.setdefault((name, one["attempt"]), Start(name, one["attempt"], second))
    return list(found.values())
