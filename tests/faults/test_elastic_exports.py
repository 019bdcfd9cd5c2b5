"""Elastic jobs in an account's export, from the queue that ran them to a replay that runs them again."""

import json
from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.durations.work_speeds import MeasuredWidths
from trainmaster.core.jobs.elastic_state import NEVER_RAN, TrainingProgress
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.policy import parse_policy
from trainmaster_client.errors import MalformedHistoryError
from trainmaster_client.simulate.comparison.audits import wrong_training
from trainmaster_client.simulate.comparison.outcomes import outcomes_of
from trainmaster_client.simulate.engine.past_jobs import History, PastJob
from trainmaster_client.simulate.engine.recorded import recorded
from trainmaster_client.simulate.engine.replays import Replay, ReplayedAttempt
from trainmaster_client.simulate.histories.export_lines import read_lines
from trainmaster_client.simulate.histories.exported_history import exported_history
from trainmaster_client.simulate.io.replaying import replay

from tests.builders import minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends, trains
from tests.faults.test_elastic_changes import PROMPT, attempt_of, wide_is_over
from tests.faults.test_elastic_jobs import later, pool
from tests.integration.messages import proxy_event
from tests.integration.world import World

POLICY = {"version": 1} | pool(4, **PROMPT)
SPEEDS = {"2": 600, "4": 1000}
"""Steps in 1,000 seconds, by width."""


@pytest.fixture
def lines(new_world: NewWorld) -> list[dict[str, Any]]:
    """An elastic job gave two of four instances up for an urgent one, grew again and completed."""
    world = new_world(pool(4, **PROMPT))
    wide_is_over(world)
    world.tell("wide")
    world.schedule()
    trains(world, attempt_of(world), "urgent")
    later(world, minutes(20))
    ends(world, "urgent")
    later(world, minutes(20))
    job = world.job("wide")
    assert job.reason is not None
    assert job.reason.code == "grow"
    progress = TrainingProgress(at=world.now, step=100, steps=50_000, speeds=SPEEDS)
    told = replace(job, elastic=replace(job.elastic or NEVER_RAN, progress=progress))
    world.wiring.store.commit([Change(before=job, after=told)], at=world.now)
    ends(world, attempt_of(world), "Stopped")
    world.a_minute_passes()
    trains(world, attempt_of(world))
    later(world, minutes(60))
    ends(world, attempt_of(world))
    return exported(world)


def exported(world: World) -> list[dict[str, Any]]:
    """Return the lines without statuses: the fake of SageMaker does not date the end of Training."""
    body = world.call("api", proxy_event("GET", "/history/export"))["body"]
    found: list[dict[str, Any]] = [json.loads(line) for line in body.splitlines()]
    for line in found:
        for attempt in line["attempts"]:
            attempt["statuses"] = None
    return found


def history(lines: list[dict[str, Any]]) -> History:
    jobs = read_lines([json.dumps(line) for line in lines], where="the stack")
    return exported_history(jobs, source="the stack")


def wide(lines: list[dict[str, Any]]) -> PastJob:
    return next(job for job in history(lines).jobs if job.name == "wide")


def _of_wide(found: Replay) -> list[ReplayedAttempt]:
    return sorted((row for row in found.attempts if row.job == "wide"), key=lambda row: row.attempt)


def widths(found: Replay) -> list[tuple[int, str]]:
    return [(row.instances, row.end) for row in _of_wide(found)]


def test_the_export_has_widths_speeds_and_the_instances_of_each_attempt(lines: list[dict[str, Any]]) -> None:
    by_name = {line["name"]: line for line in lines}
    assert by_name["wide"]["elastic"] == {"widths": [1, 2, 3, 4], "speeds": SPEEDS, "measured": None}
    assert [attempt["instances"] for attempt in by_name["wide"]["attempts"]] == [4, 2, 4]
    assert by_name["urgent"]["elastic"] is None


def test_a_replay_of_the_export_shrinks_and_grows_it_as_the_queue_did(lines: list[dict[str, Any]]) -> None:
    past = history(lines)
    went = [(4, "resized"), (2, "resized"), (4, "completed")]
    assert widths(recorded(past)) == went
    found = replay(past, parse_policy(POLICY), label="mine")
    assert widths(found) == went
    shrink, grow, _ = _of_wide(found)
    assert (shrink.end_s, shrink.lost_s) == (16 * 60, 0)
    assert grow.end_s == shrink.end_s + 30 * 60, "the snooze after the shrink; the queue looked later"
    assert wrong_training(outcomes_of(past, found)) == []


def test_a_narrow_attempt_counts_at_the_jobs_own_speed(lines: list[dict[str, Any]]) -> None:
    job = wide(lines)
    assert job.elastic is not None
    assert (job.elastic.speeds[2], job.elastic.speeds[4]) == (0.6, 1)
    first, narrow, last = job.attempts
    whole = [attempt.ended_at - attempt.training_since for attempt in (first, narrow, last)]  # type: ignore[operator]
    assert job.trains_for < sum(whole, minutes(0)) - 0.3 * whole[1]


MEASURED = MeasuredWidths(counts=(2, 4), per_1000_s=(9_000, 16_000), runs=3, other_settings=True)
WRITTEN: dict[str, Any] = {
    "widths": [2, 4],
    "per_1000_seconds": [9_000, 16_000],
    "runs": 3,
    "other_settings": True,
}


def test_speeds_of_earlier_runs_come_back_from_an_export(new_world: NewWorld) -> None:
    world = new_world(pool(4, **PROMPT))
    wide_is_over(world)
    job = world.job("wide")
    assert job.spec.widths is not None
    told = replace(job, spec=replace(job.spec, widths=replace(job.spec.widths, measured=MEASURED)))
    world.wiring.store.commit([Change(before=job, after=told)], at=world.now)
    (line,) = [line for line in exported(world) if line["name"] == "wide"]
    assert line["elastic"]["measured"] == WRITTEN
    found = wide([line]).elastic
    assert found is not None
    assert found.widths.measured == MEASURED


def test_an_export_of_an_earlier_stack_reads_as_a_rigid_job(lines: list[dict[str, Any]]) -> None:
    new = {"elastic", "avoids_plans"}
    earlier = [{name: value for name, value in line.items() if name not in new} for line in lines]
    for line in earlier:
        for attempt in line["attempts"]:
            del attempt["instances"]
    assert (wide(earlier).elastic, wide(earlier).attempts[1].instances) == (None, None)


@pytest.mark.parametrize(
    ("elastic", "says"),
    [
        pytest.param(7, "elastic: 7 is not an object", id="not an object"),
        pytest.param({"speeds": {}}, "elastic.widths: is missing", id="no widths"),
        pytest.param({"widths": "1-4"}, "elastic.widths: '1-4' is not a list of whole numbers", id="a text"),
        pytest.param({"widths": []}, "elastic.widths: [] is no list of widths", id="none"),
        pytest.param({"widths": [4, 2]}, "elastic.widths: [4, 2] is no list of widths", id="out of order"),
        pytest.param({"widths": [1, 8]}, "does not end with the job's instances", id="another largest"),
        pytest.param({"widths": [1, 4]}, "attempts[1].instances: 2 is not one of the job's", id="an attempt"),
        pytest.param(
            {"widths": [2, 4], "speeds": {"3": 5}}, "elastic.speeds.3: is not one of the job's", id="no width"
        ),
        pytest.param(
            {"widths": [2, 4], "speeds": {"2": 0}}, "elastic.speeds.2: 0 is not a valid number", id="no speed"
        ),
        *(
            pytest.param(
                {"widths": [1, 2, 4], "measured": WRITTEN | odd},
                f"elastic.measured.{says}",
                id=f"measured {says}",
            )
            for odd, says in (
                ({"widths": [4, 2]}, "widths: [4, 2] is no list of measured widths"),
                ({"widths": [2]}, "widths: [2] is no list of measured widths"),
                ({"per_1000_seconds": [9_000]}, "per_1000_seconds: [9000] has not one speed for each"),
                ({"per_1000_seconds": [0, 1]}, "per_1000_seconds: [0, 1] is not a list of whole numbers"),
                ({"runs": 0}, "runs: 0 is not a valid number"),
                ({"other_settings": "no"}, "other_settings: 'no' is not true or false"),
            )
        ),
    ],
)
def test_odd_widths_are_refused_with_line_field_and_remedy(
    lines: list[dict[str, Any]], elastic: object, says: str
) -> None:
    odd = [line | {"elastic": elastic} if line["name"] == "wide" else line for line in lines]
    with pytest.raises(MalformedHistoryError) as refused:
        wide(odd)
    assert says in str(refused.value)
