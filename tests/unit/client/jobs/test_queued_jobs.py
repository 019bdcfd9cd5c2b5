"""How often the queue is asked about a name, and what stands in for an answer that does not come."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from trainmaster_client.api import Document
from trainmaster_client.errors import (
    ApiFailedError,
    ApiUnreachableError,
    ForbiddenError,
    GatewayRefusedError,
    NotFoundError,
    Problem,
    TrainmasterClientError,
)
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.jobs.queued_jobs import QueuedJobs

AWAY = ApiUnreachableError("https://api/prod", why="connection refused.")
BUSY = ApiFailedError(Problem(status=503, title="Busy", detail="later"))
UNKNOWN = NotFoundError(Problem(status=404, title="Not found", detail="no job"))
FORBIDDEN = ForbiddenError(Problem(status=403, title="Forbidden", detail="no team"))


@dataclass
class FakeQueue:
    """One answer for every look until the test changes it."""

    answer: Document | TrainmasterClientError
    asked: list[dict[str, Any]] = field(default_factory=list)
    now: float = 0.0

    def job(self, name: str, **options: Any) -> Document:
        self.asked.append({"name": name, **options})
        if isinstance(self.answer, TrainmasterClientError):
            raise self.answer
        return self.answer

    def jobs(self) -> QueuedJobs:
        return QueuedJobs(self, monotonic=lambda: self.now)  # type: ignore[arg-type]  # its reads alone


def test_looks_within_a_second_are_one_question_without_an_estimate() -> None:
    queue = FakeQueue({"name": "job1", "state": "pending"})
    jobs = queue.jobs()
    for queue.now in (0.0, 0.9, 1.0):
        assert jobs.find("job1") == {"name": "job1", "state": "pending"}
    assert queue.asked == [{"name": "job1", "estimate": False}] * 2


def test_a_name_that_is_not_there_is_asked_for_ever_more_seldom_up_to_a_minute() -> None:
    queue = FakeQueue(UNKNOWN)
    jobs = queue.jobs()
    asked_at = []
    for second in range(200):
        queue.now = float(second)
        before = len(queue.asked)
        assert jobs.find("old") is None
        asked_at += [second] * (len(queue.asked) - before)
    assert asked_at == [0, 2, 6, 14, 30, 62, 122, 182]


def test_a_name_that_was_not_there_is_known_at_once_when_this_process_submits_it() -> None:
    queue = FakeQueue(UNKNOWN)
    jobs = queue.jobs()
    assert jobs.find("job1") is None
    queue.answer = {"name": "job1", "state": "running"}
    jobs.submitted({"name": "job1", "state": "pending"})
    assert jobs.find("job1") == {"name": "job1", "state": "running"}


def test_what_was_submitted_stands_in_for_an_api_that_is_away_right_after() -> None:
    queue = FakeQueue(AWAY)
    jobs = queue.jobs()
    jobs.submitted({"name": "job1", "state": "pending"})
    assert jobs.find("job1") == {"name": "job1", "state": "pending"}


def test_a_change_keeps_what_was_known_of_the_attempts() -> None:
    queue = FakeQueue({"name": "job1", "state": "running", "attempts": [{"attempt": 0}]})
    jobs = queue.jobs()
    jobs.find("job1")
    jobs.submitted({"name": "job1", "state": "stopping"})
    queue.answer = AWAY
    assert jobs.find("job1") == {"name": "job1", "state": "stopping", "attempts": [{"attempt": 0}]}


@pytest.mark.parametrize("silence", [AWAY, BUSY])
def test_the_last_answer_counts_for_a_quarter_of_an_hour_of_silence(silence: TrainmasterClientError) -> None:
    queue = FakeQueue({"name": "job1", "state": "pending"})
    jobs = queue.jobs()
    jobs.find("job1")
    queue.answer = silence
    queue.now = 899.0
    assert jobs.find("job1") == {"name": "job1", "state": "pending"}
    queue.now = 900.0
    with pytest.raises(type(silence)):
        jobs.find("job1")


def test_silence_about_a_name_that_was_never_seen_is_an_error() -> None:
    with pytest.raises(ApiUnreachableError):
        FakeQueue(AWAY).jobs().find("job1")


@pytest.mark.parametrize("refusal", [UNKNOWN, FORBIDDEN])
def test_a_job_that_was_seen_and_is_refused_now_is_an_error_not_a_stranger(
    refusal: TrainmasterClientError,
) -> None:
    queue = FakeQueue({"name": "job1", "state": "pending"})
    jobs = queue.jobs()
    jobs.find("job1")
    queue.answer, queue.now = refusal, 5.0
    with pytest.raises(type(refusal)):
        jobs.find("job1")


def test_a_job_that_the_queue_has_forgotten_after_its_end_is_sagemakers() -> None:
    queue = FakeQueue({"name": "job1", "state": "completed"})
    jobs = queue.jobs()
    jobs.find("job1")
    queue.answer, queue.now = UNKNOWN, 5.0
    assert jobs.find("job1") is None


def test_a_job_that_was_submitted_and_not_looked_at_until_the_queue_forgot_it_is_sagemakers() -> None:
    queue = FakeQueue(UNKNOWN)
    jobs = queue.jobs()
    jobs.submitted({"name": "job1", "state": "pending"})
    queue.now = 91 * 86400.0
    assert jobs.find("job1") is None


def test_who_lost_the_right_to_see_a_job_is_told_so_however_late() -> None:
    queue = FakeQueue({"name": "job1", "state": "completed"})
    jobs = queue.jobs()
    jobs.find("job1")
    queue.answer, queue.now = FORBIDDEN, 91 * 86400.0
    with pytest.raises(ForbiddenError):
        jobs.find("job1")


def test_a_late_answer_that_a_job_is_not_there_does_not_hide_what_another_thread_submitted() -> None:
    class Racing(FakeQueue):
        def job(self, name: str, **options: Any) -> Document:
            jobs.submitted({"name": name, "state": "pending"})
            return FakeQueue.job(self, name, **options)

    queue = Racing(UNKNOWN)
    jobs = queue.jobs()
    assert jobs.find("job1") == {"name": "job1", "state": "pending"}
    queue.answer = AWAY
    assert jobs.find("job1") == {"name": "job1", "state": "pending"}


def test_a_process_that_looks_at_jobs_for_months_keeps_the_latest_five_hundred() -> None:
    queue = FakeQueue({"state": "pending", "request": {}})
    jobs = queue.jobs()
    for number in range(501):
        jobs.find(f"job{number}")
        jobs.request(f"job{number}")
    before = len(queue.asked)
    jobs.request("job1")
    assert len(queue.asked) == before
    jobs.request("job0")
    jobs.find("job0")
    assert len(queue.asked) == before + 2


def test_who_may_see_nothing_of_the_queue_has_nothing_in_it() -> None:
    assert FakeQueue(FORBIDDEN).jobs().find("job1") is None


def test_the_request_is_asked_for_once() -> None:
    queue = FakeQueue({"name": "job1", "request": {"RoleArn": "r"}})
    jobs = queue.jobs()
    for queue.now in (0.0, 1000.0):
        assert jobs.request("job1") == {"RoleArn": "r"}
    assert queue.asked == [{"name": "job1", "estimate": False, "request": True}]


@pytest.mark.parametrize("known", [True, False])
def test_O15_expired_credentials_say_nothing_of_a_job(*, known: bool) -> None:
    queue = FakeQueue({"name": "job1", "state": "pending"})
    jobs = queue.jobs()
    if known:
        jobs.find("job1")
    queue.now = 5.0
    queue.answer = GatewayRefusedError(
        Problem(status=403, title="The API refused", detail="expired"), Trouble.EXPIRED_CREDENTIALS
    )
    with pytest.raises(GatewayRefusedError):
        jobs.find("job1")
    queue.answer = {"name": "job1", "state": "running"}
    assert jobs.find("job1") == queue.answer, "it was not taken for absent"
