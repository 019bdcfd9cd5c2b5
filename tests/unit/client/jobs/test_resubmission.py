"""The name of a job that is submitted again."""

from datetime import UTC, datetime
from typing import Any

import pytest
from trainmaster_client.jobs.resubmission import LONGEST_NAME, request_again

NOW = datetime(2026, 11, 27, 9, 30, 5, tzinfo=UTC)


class Queue:
    def __init__(self, name: str) -> None:
        self._name = name

    def job(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"name": self._name, "request": {"TrainingJobName": self._name, "RoleArn": "r"}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("nightly", "nightly-20261127-093005"),
        ("nightly-20261126-031500", "nightly-20261127-093005"),
        ("a" * 63, f"{'a' * 47}-20261127-093005"),
        (f"{'a' * 46}-{'b' * 16}", f"{'a' * 46}-20261127-093005"),
    ],
)
def test_C10_a_name_gets_the_time_once_and_stays_a_name(old: str, new: str) -> None:
    api: Any = Queue(old)
    request = request_again(api, old, name=None, now=NOW)
    assert request == {"TrainingJobName": new, "RoleArn": "r"}
    assert len(new) <= LONGEST_NAME


def test_C10_an_attempts_name_leads_to_the_name_of_the_job() -> None:
    api: Any = Queue("nightly")
    assert request_again(api, "nightly-r2", name=None, now=NOW)["TrainingJobName"].startswith("nightly-2026")
