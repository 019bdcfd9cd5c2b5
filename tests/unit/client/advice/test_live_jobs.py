"""Which jobs wait or run, and how long each still trains."""

from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.advice.live_jobs import SHORTEST, live_queues
from trainmaster_client.simulate.histories.export_lines import ExportedAttempt, ExportedJob

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
P5, P4 = "ml.p5.48xlarge", "ml.p4d.24xlarge"


def attempt(began: float, *, ended: float | None = None, end: str | None = None) -> ExportedAttempt:
    """Hours ago; it trained from its beginning."""
    return ExportedAttempt(
        started_at=NOW - began * HOUR,
        training_since=NOW - began * HOUR,
        ended_at=None if ended is None else NOW - ended * HOUR,
        end=end,
        lost=timedelta(),
        warm_start=False,
        trained=None,
        interruptions=None,
    )


def line(name: str, **changes: Any) -> ExportedJob:
    values: dict[str, Any] = {
        "team": "vision",
        "submitted_by": "ann",
        "pool": "p5",
        "instances": {P5: 2},
        "capacity_type": "on-demand",
        "priority": 0,
        "submitted_at": NOW - 20 * HOUR,
        "max_runtime": 48 * HOUR,
        "saves_checkpoints": True,
        "attempts": (),
        "end": None,
        "ended_at": None,
        "entry_id": name,
        "preemptible": None,
    }
    return ExportedJob(name=name, **(values | changes))


ENDED = line(
    "done", attempts=(attempt(12, ended=6, end="completed"),), end="completed", ended_at=NOW - 6 * HOUR
)


def test_a_job_that_waits_is_taken_to_train_as_long_as_its_team_does():
    [queue] = live_queues([ENDED, line("waits")], read_at=NOW)

    [job] = queue.jobs
    assert (queue.instance_type, job.name, job.instances) == (P5, "waits", 2)
    assert (job.needs, job.is_running, job.saves) == (6 * HOUR, False, True)
    assert queue.hours == 12


def test_a_job_that_runs_is_taken_to_need_as_much_again_and_comes_first():
    [queue] = live_queues([line("waits", priority=100), line("runs", attempts=(attempt(4),))], read_at=NOW)

    assert [(job.name, job.is_running) for job in queue.jobs] == [("runs", True), ("waits", False)]
    assert queue.jobs[0].needs == 4 * HOUR
    assert [job.name for job in queue.waiting] == ["waits"]


def test_nothing_is_taken_to_run_longer_than_it_may_or_no_time_at_all():
    [queue] = live_queues([line("runs", attempts=(attempt(4),), max_runtime=4 * HOUR)], read_at=NOW)

    assert queue.jobs[0].needs == SHORTEST


def test_a_job_that_resumes_needs_what_its_last_attempt_did_not_do():
    stopped = (attempt(10, ended=7, end="preemption"),)
    [queue] = live_queues([line("resumes", attempts=stopped)], read_at=NOW)

    assert (queue.jobs[0].is_running, queue.jobs[0].needs) == (False, 3 * HOUR)


def test_the_order_is_that_of_priority_and_submission():
    early, late = NOW - 9 * HOUR, NOW - 8 * HOUR
    [queue] = live_queues(
        [
            line("late", submitted_at=late),
            line("urgent", priority=10, submitted_at=late),
            line("early", submitted_at=early),
        ],
        read_at=NOW,
    )

    assert [job.name for job in queue.jobs] == ["urgent", "early", "late"]


def test_each_type_has_its_queue_and_spot_jobs_and_mixed_ones_are_left_out():
    found = live_queues(
        [
            line("p5"),
            line("p4", instances={P4: 1}),
            line("spot", capacity_type="spot"),
            line("mixed", instances={P4: 1, P5: 1}),
            line("stays", preemptible=False, instances={P4: 1}),
        ],
        read_at=NOW,
    )

    names = {queue.instance_type: [(job.name, job.saves) for job in queue.jobs] for queue in found}
    assert names == {P4: [("p4", True), ("stays", False)], P5: [("p5", True)]}


def test_nothing_live_is_no_queue():
    assert live_queues([ENDED], read_at=NOW) == []
    assert live_queues([], read_at=NOW) == []
