"""What a change would do, as it is said before it is confirmed."""

from typing import Any

import pytest
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.views.consequences import question

from tests.integration.client.fake_api import view
from tests.unit.client.cli.full_screen.queue_screen import ATTEMPT, NOON


def job(state: str, **fields: Any) -> JobView:
    return job_view(view("job1", state=state, **fields))


def consequence(change: str, seen: JobView) -> str:
    return question(change, seen, now=NOON).consequence


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (job("pending"), "It leaves the queue at once and is not requeued."),
        (
            job("preempted", attempt=1),
            "It leaves the queue at once and is not requeued. What its attempts saved stays where it is.",
        ),
        (job("failed"), "It has ended: it is failed. There is nothing to cancel."),
        (
            job("running", attempts=[{**ATTEMPT, "last_checkpoint": None}]),
            (
                "It is running for 1h00m on 1x ml.p5.48xlarge. SageMaker stops it; it is not requeued. "
                "No checkpoint of this attempt was seen: all of its work may be lost."
            ),
        ),
        (
            job("running", attempts=[{**ATTEMPT, "last_checkpoint_is_lower_bound": True}]),
            (
                "It is running for 1h00m on 1x ml.p5.48xlarge. SageMaker stops it; it is not requeued. "
                "Its newest checkpoint is at most 12m00s old; later work is lost."
            ),
        ),
        (
            job("starting"),
            (
                "It is starting on 1x ml.p5.48xlarge. SageMaker stops it; it is not requeued. "
                "No checkpoint of this attempt was seen: all of its work may be lost."
            ),
        ),
    ],
)
def test_a_cancel(seen: JobView, said: str) -> None:
    assert consequence("cancel", seen) == said


def test_a_priority() -> None:
    assert consequence("priority", job("pending")).endswith("It is at position 3 now.")
    assert "harder to preempt" in consequence("priority", job("running"))
    assert "no longer matters" in consequence("priority", job("completed"))


def test_a_hold() -> None:
    assert "does not start until it is released" in consequence("hold", job("pending"))
    assert "waits in the queue again" in consequence("release", job("held"))
    assert "only a waiting job can be held" in consequence("hold", job("running"))


@pytest.mark.parametrize(
    ("change", "states"),
    [
        ("cancel", {"pending", "held", "running"}),
        ("priority", {"pending", "held", "running"}),
        ("hold", {"pending", "held"}),
        ("release", {"held"}),
    ],
)
def test_a_change_that_cannot_be_made_is_vain(change: str, states: set[str]) -> None:
    seen = {
        state: question(change, job(state), now=NOON) for state in ("pending", "held", "running", "failed")
    }
    assert {state for state, asked in seen.items() if not asked.is_vain} == states
    assert all("job1" in asked.title for asked in seen.values())
