"""One team's many shapes and many reads cost others nothing: what is first is looked at, answers come."""

from pathlib import Path

import pytest

from tests.e2e.plane import INSTANCE_TYPE, Document, Plane, member, pool, running_plane, tags, until_exists

pytestmark = pytest.mark.thorough

CAPACITY = 2
SHAPES = 75
WITHIN_SECONDS = 60
"""Of the twin's clock, from blue's submission to its start."""
_STEP_SECONDS = 5


def team(name: str) -> Document:
    return {"name": name, "principals": [f"arn:aws:iam::123456789012:role/{name}-*"], "roles": "any"}


def both(plane: Plane, name: str, end: Path, **more: str) -> Document:
    """A request for both instances of the pool, until the file exists."""
    resources = {"InstanceType": INSTANCE_TYPE, "InstanceCount": CAPACITY, "VolumeSizeInGB": 10}
    network = {"SecurityGroupIds": ["sg-0a1b2c3d"], "Subnets": ["subnet-0a1b2c3d"]}
    return plane.request(
        name, until_exists(end), ResourceConfig=resources, VpcConfig=network, Tags=tags(**more)
    )


def shapes(number: int) -> str:
    """Different for each job; most so long that their lane is known by a digest."""
    subnets = range(2 if number % 10 == 0 else 8)
    return " ".join(f"{INSTANCE_TYPE}={CAPACITY}@subnet-{number:04x}{one:04x}" for one in subnets)


def test_a_teams_many_shapes_do_not_hide_another_teams_urgent_job(tmp_path: Path) -> None:
    policy = pool(CAPACITY, teams=[team("red"), team("blue")])
    end = tmp_path / "end"
    with running_plane(tmp_path, "--clock", "manual", "--speed", "60", policy=policy) as plane:
        red, blue = member(plane, "red"), member(plane, "blue")
        for number in range(SHAPES):
            request = both(plane, f"red-{number}", end, **{"trainmaster:alternatives": shapes(number)})
            plane.add(request, keys=red)
        plane.clock(120)
        assert {state for _, state in plane.queue()[1:]} == {"pending"}
        plane.add(both(plane, "blue-urgent", end, priority="1000"), keys=blue)
        waited = 0
        while plane.job("blue-urgent")["state"] != "running":
            assert waited < WITHIN_SECONDS, plane.job("blue-urgent")
            plane.clock(_STEP_SECONDS)
            waited += _STEP_SECONDS
        end.touch()


MOST_READS = 5


def test_a_team_that_reads_too_often_is_refused_until_the_minute_is_over_and_no_other_is(
    tmp_path: Path,
) -> None:
    policy = pool(CAPACITY, teams=[team("red"), team("blue")])
    policy["pools"][0]["limits"] = {"max_reads_per_minute": MOST_READS}
    with running_plane(tmp_path, "--clock", "manual", policy=policy) as plane:
        red, blue = member(plane, "red"), member(plane, "blue")
        answers = [plane.call("GET", "/jobs", keys=red) for _ in range(MOST_READS + 2)]
        assert [one.status for one in answers] == [*[200] * MOST_READS, 429, 429]
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert plane.call("GET", "/jobs", keys=blue).status == 200
        plane.clock(60)
        assert plane.call("GET", "/jobs", keys=red).status == 200


def test_an_estimate_behind_many_shapes_is_an_answer_within_the_time_of_the_function(tmp_path: Path) -> None:
    policy = pool(CAPACITY, teams=[team("red"), team("blue")])
    end = tmp_path / "end"
    with running_plane(tmp_path, "--clock", "manual", "--speed", "60", policy=policy) as plane:
        red, blue = member(plane, "red"), member(plane, "blue")
        for number in range(SHAPES):
            request = both(plane, f"red-{number}", end, **{"trainmaster:alternatives": shapes(number)})
            plane.add(request, keys=red)
        plane.clock(60)
        plane.add(both(plane, "blue-last", end), keys=blue)
        answer = plane.call("GET", "/jobs/blue-last", keys=blue)
        assert answer.status == 200
        found = answer.document
        assert (found["state"], found["position"]) == ("pending", SHAPES)
        assert (found["estimated_start"] is None) != (found["estimate_note"] is None)
        end.touch()
