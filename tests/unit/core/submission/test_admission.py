"""What becomes of a valid request: its pool, the policy's objections, the new job."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.durations.learned import Known
from trainmaster.core.errors import PolicyViolationError
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice
from trainmaster.core.jobs.model import JobState
from trainmaster.core.policy import Order, Policy, parse_policy
from trainmaster.core.request.request import read_request
from trainmaster.core.submission.admission import Submission, is_same_request, judge, new_job, ulid

from tests.bodies import body, resources, spot, tag_list, tags

P5, G5, G5_SMALL = "ml.p5.48xlarge", "ml.g5.12xlarge", "ml.g5.4xlarge"
NOW = datetime(2026, 1, 1, 12, 0, 0, 123_456, tzinfo=UTC)
POLICY = parse_policy(
    {
        "pools": [
            {"name": "p5", "capacity": {P5: 2}, "spot_capacity": {P5: 4}},
            {"name": "g5", "capacity": {G5: 3, G5_SMALL: 0}},
        ],
        "teams": [{"name": "vision", "roles": "any", "max_priority": 500}],
    }
)
LEARNED = Known(predicted=timedelta(minutes=7))


def submission(request: dict[str, Any], *, team: str = "vision") -> Submission:
    return Submission(body=request, ask=read_request(request), team=team, submitted_by="arn:someone")


def objections(request: dict[str, Any], policy: Policy = POLICY) -> list[tuple[str, str | None]]:
    return [(one.field, one.rule) for one in judge(submission(request), policy).violations]


def groups(*shapes: tuple[str, int]) -> dict[str, Any]:
    return resources(
        InstanceGroups=[
            {"InstanceType": kind, "InstanceCount": count, "InstanceGroupName": f"g{index}"}
            for index, (kind, count) in enumerate(shapes)
        ],
        VolumeSizeInGB=30,
    )


def alternatives(text: str, **resource_config: Any) -> dict[str, Any]:
    whole = resources(**resource_config) if resource_config else body()
    return whole | {"Tags": tag_list({"trainmaster:alternatives": text})}


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [
        pytest.param(body(), [], id="fits"),
        pytest.param(resources(InstanceType=P5, InstanceCount=2), [], id="the whole pool fits"),
        pytest.param(
            resources(InstanceType=P5, InstanceCount=3),
            [("ResourceConfig.InstanceCount", "never-fits")],
            id="F8 more than the pool has in all",
        ),
        pytest.param(
            resources(InstanceType=G5_SMALL, InstanceCount=1),
            [("ResourceConfig.InstanceCount", "never-fits")],
            id="a drained type has room for nobody",
        ),
        pytest.param(spot() | {"ResourceConfig": {"InstanceType": P5, "InstanceCount": 4}}, [], id="spot"),
        pytest.param(
            spot() | {"ResourceConfig": {"InstanceType": G5, "InstanceCount": 1}},
            [("ResourceConfig.InstanceCount", "never-fits")],
            id="spot where there is on-demand capacity alone",
        ),
        pytest.param(
            resources(InstanceType="ml.p9.huge", InstanceCount=1),
            [("ResourceConfig.InstanceType", "no-pool")],
            id="F7 a type of no pool",
        ),
        pytest.param(
            resources(InstanceType="ML.P5.48xlarge", InstanceCount=1),
            [("ResourceConfig.InstanceType", "no-pool")],
            id="F7 a type in the wrong case",
        ),
        pytest.param(groups((G5, 1), (G5, 2)), [], id="F9 groups are counted together"),
        pytest.param(
            groups((G5, 2), (G5, 2)),
            [("ResourceConfig.InstanceGroups[0].InstanceCount", "never-fits")],
            id="F9 groups that are too many together",
        ),
        pytest.param(
            groups((G5, 1), ("ml.p9.huge", 1)),
            [("ResourceConfig.InstanceGroups[1].InstanceType", "no-pool")],
            id="a group of no pool",
        ),
        pytest.param(groups((G5, 1), (P5, 1)), [("ResourceConfig", "one-pool")], id="types of two pools"),
        pytest.param(
            resources(
                InstancePreferences=[
                    {"InstanceType": G5, "InstanceCount": 9},
                    {"InstanceType": G5_SMALL, "InstanceCount": 1},
                ]
            ),
            [
                ("ResourceConfig.InstancePreferences[0].InstanceCount", "never-fits"),
                ("ResourceConfig.InstancePreferences[1].InstanceCount", "never-fits"),
            ],
            id="F10 preferences none of which fits",
        ),
        pytest.param(
            resources(
                InstancePreferences=[
                    {"InstanceType": G5, "InstanceCount": 9},
                    {"InstanceType": G5, "InstanceCount": 3},
                ]
            ),
            [("ResourceConfig.InstancePreferences[0].InstanceCount", "never-fits")],
            id="a preference that never fits, beside one of its type that does",
        ),
        pytest.param(
            alternatives(f"{P5}=9 {P5}=1"),
            [("Tags[0].Value", "never-fits")],
            id="an alternative that never fits, beside one that does",
        ),
        pytest.param(
            alternatives(f"{P5}=9 {P5}=5:spot"),
            [("Tags[0].Value", "never-fits"), ("Tags[0].Value", "never-fits")],
            id="alternatives none of which fits",
        ),
        pytest.param(
            alternatives(f"{P5}=1 {G5}=1"), [("ResourceConfig", "one-pool")], id="alternatives of two pools"
        ),
        pytest.param(
            alternatives(f"{P5}=1 ml.p9.huge=1"),
            [("Tags[0].Value", "no-pool")],
            id="an alternative of no pool",
        ),
        pytest.param(
            alternatives(f"{G5}=1", InstanceType="ml.p9.huge", InstanceCount=1),
            [],
            id="with alternatives the type of the request counts for nothing",
        ),
        pytest.param(
            resources(InstanceCount=9, InstancePreferences=[{"InstanceType": G5}]),
            [("ResourceConfig.InstanceCount", "never-fits")],
            id="preferences that share one count",
        ),
        pytest.param(
            body(Tags=tags(model="x", priority="501")),
            [("Tags[1].Value", "max-priority")],
            id="F1 above the team's ceiling",
        ),
        pytest.param(body(Tags=tags(priority="500")), [], id="F1 at the team's ceiling"),
        pytest.param(
            resources(InstanceType=P5, InstanceCount=3) | {"Tags": tags(priority="900")},
            [("ResourceConfig.InstanceCount", "never-fits"), ("Tags[0].Value", "max-priority")],
            id="every objection at once",
        ),
    ],
)
def test_objections(request_body: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert objections(request_body) == expected


def test_without_teams_the_ceiling_is_that_of_all_priorities() -> None:
    assert (
        objections(
            body(Tags=tags(priority="1000")), parse_policy({"pools": [{"name": "a", "capacity": {P5: 1}}]})
        )
        == []
    )


def test_an_accepted_submission_has_a_pool() -> None:
    pool = judge(submission(body()), POLICY).accepted()
    assert pool.name == "p5"


def test_a_refused_submission_says_everything() -> None:
    verdict = judge(
        submission(resources(InstanceType=P5, InstanceCount=3) | {"Tags": tags(priority="900")}), POLICY
    )
    with pytest.raises(PolicyViolationError) as caught:
        verdict.accepted()
    assert caught.value.errors == verdict.violations
    assert caught.value.detail == (
        "ResourceConfig.InstanceCount: asks for 3, but pool p5 has 2 on-demand ml.p5.48xlarge in all"
        " (and 1 more)"
    )
    assert all(error.hint for error in caught.value.errors)


def test_a_policy_without_pools_says_so() -> None:
    (error,) = judge(submission(body()), parse_policy({})).violations
    assert "no pools yet" in error.hint


def test_the_new_job() -> None:
    request = spot() | {
        "ResourceConfig": {"InstanceType": P5, "InstanceCount": 2},
        "Tags": tag_list({"priority": "3", "trainmaster:preemptible": "false"}),
        "CheckpointConfig": {"S3Uri": "s3://bucket/checkpoints"},
    }
    one = new_job(submission(request), POLICY.pools[0], entry_id="01E", now=NOW)
    assert one.state is JobState.PENDING
    assert one.priority == 3
    assert one.spec.vector == {Capacity(P5, CapacityType.SPOT): 2}
    assert one.spec.shapes[0].capacity_type is CapacityType.SPOT
    assert (one.spec.entry_id, one.spec.pool, one.spec.team) == ("01E", "p5", "vision")
    assert one.spec.submitted_by == "arn:someone"
    assert one.spec.max_runtime == timedelta(hours=1)
    assert one.spec.max_wait == timedelta(hours=2)
    assert not one.spec.preemptible
    assert one.spec.has_checkpoint


def test_the_new_job_remembers_its_shapes_its_wish_for_a_warm_pool_and_how_long_such_jobs_take() -> None:
    request = alternatives(
        f"{P5}=1 {P5}=2:spot", InstanceType=P5, InstanceCount=1, KeepAlivePeriodInSeconds=600
    )
    one = new_job(
        submission(request),
        POLICY.pools[0],
        entry_id="01E",
        now=NOW,
        known=LEARNED,
    )
    assert [shape.vector for shape in one.spec.shapes] == [
        {Capacity(P5): 1},
        {Capacity(P5, CapacityType.SPOT): 2},
    ]
    assert (one.spec.choice, one.spec.keep_alive) == (Choice.FIRST_FIT, timedelta(minutes=10))
    assert one.spec.predicted == timedelta(minutes=7)
    assert one.ranked_by == POLICY.pools[0].order_key


def test_where_short_jobs_go_first_the_score_knows_how_long_such_jobs_take() -> None:
    pool = replace(POLICY.pools[0], order=Order(shortest_first=True))
    one = new_job(submission(body()), pool, entry_id="01E", now=NOW, known=LEARNED)
    assert one.score == 1_767_268_800_123 - 3 * 86_400_000 + 7 * 86_400_000 * 7 // 67


def test_a_job_enters_at_a_whole_millisecond_less_the_boost_of_its_priority() -> None:
    one = new_job(submission(body(Tags=tags(priority="2"))), POLICY.pools[0], entry_id="01E", now=NOW)
    assert one.spec.submitted_at == datetime(2026, 1, 1, 12, 0, 0, 123_000, tzinfo=UTC)
    assert one.score == 1_767_268_800_123 - 2 * 86_400_000


def test_the_same_request_of_the_same_team_is_the_same_submission() -> None:
    one = new_job(submission(body()), POLICY.pools[0], entry_id="01E", now=NOW)
    reordered = dict(reversed(body().items()))
    assert is_same_request(one, submission(reordered))
    assert not is_same_request(one, submission(body(), team="speech"))
    assert not is_same_request(one, submission(body(HyperParameters={"epochs": "4"})))


def test_a_ulid_is_time_then_chance() -> None:
    """The time part is the example of the specification."""
    when = datetime.fromtimestamp(1_469_918_176.385, tz=UTC)
    assert ulid(when, bytes(10)) == "01ARYZ6S410000000000000000"
    assert ulid(when, b"\xff" * 10) == "01ARYZ6S41ZZZZZZZZZZZZZZZZ"
