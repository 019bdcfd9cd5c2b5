"""What becomes of a training job that bypassed the queue, and what is made of one that is adopted."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Capacity, CapacityType, Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Described
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.core.policy.governance import UnmanagedThen
from trainmaster.core.request.strict_json import body_hash
from trainmaster.core.rules.violation import Outcome
from trainmaster.core.unmanaged.adoption import ADOPTED, RESTORED, adopted_job, note_of
from trainmaster.core.unmanaged.decisions import (
    Case,
    UnmanagedJob,
    ask_of,
    body_of,
    case_of,
    is_excepted,
    options_of,
    outcome_of,
    team_of,
)

from tests.bodies import body
from tests.builders import NOON, minutes, seen

ROLE = "arn:aws:iam::111122223333:role/vision-training"
P5, G5, M5 = "ml.p5.48xlarge", "ml.g5.12xlarge", "ml.m5.xlarge"
DOCUMENT: dict[str, Any] = {
    "pools": [{"name": "p5", "capacity": {P5: 2}, "order": {"aging": {"per": "1h", "add": 2}}}],
    "prices": {P5: 100},
}
TEAMS: dict[str, Any] = {
    "teams": [
        {"name": "speech", "roles": [ROLE + "-2"]},
        {"name": "vision", "max_priority": 5, "roles": [ROLE]},
        {"name": "late", "roles": [ROLE]},
    ]
}


def policy(**more: Any) -> Policy:
    return parse_policy(DOCUMENT | more)


def outside_job(
    tags: dict[str, str] | None = None, *, is_ours: bool = False, status: str = "InProgress", **changes: Any
) -> UnmanagedJob:
    fields = {
        name: changes.pop(name) for name in ("tuning_job_arn", "observation", "created_at") if name in changes
    }
    request = body(TrainingJobName="stray", Tags=None, **changes)
    values: dict[str, Any] = {
        "observation": seen("stray", status=status, training_since=NOON),
        "created_at": NOON - minutes(5),
        "request": request,
    }
    return UnmanagedJob(described=Described(**values | fields), tags=tags or {}, is_ours=is_ours)


def on(instance_type: str, count: int = 1) -> dict[str, Any]:
    return {"InstanceType": instance_type, "InstanceCount": count, "VolumeSizeInGB": 30}


# ---- the outcome


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("queueable", [False, True])
@pytest.mark.parametrize("adoptable", [False, True])
@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("then", [UnmanagedThen.AUDIT, UnmanagedThen.STOP, UnmanagedThen.ADOPT])
def test_the_outcome_is_that_of_the_table(
    then: UnmanagedThen, *, runs: bool, adoptable: bool, queueable: bool, breaks: bool
) -> None:
    case = Case(
        then=then, runs=runs, could_be_queued=queueable, can_be_adopted=adoptable, breaks_a_rule=breaks
    )
    expected = {
        ("stop", "breaks"): Outcome.STOPPED,
        ("stop", "queueable"): Outcome.STOPPED,
        ("stop", "neither"): Outcome.AUDITED,
        ("adopt", "breaks"): Outcome.STOPPED,
        ("adopt", "adoptable"): Outcome.ADOPTED,
        ("adopt", "neither"): Outcome.AUDITED,
    }
    if not runs or then is UnmanagedThen.AUDIT:
        assert outcome_of(case) is Outcome.AUDITED
        return
    helps = queueable if then is UnmanagedThen.STOP else adoptable
    name = {UnmanagedThen.STOP: "queueable", UnmanagedThen.ADOPT: "adoptable"}[then]
    why = "breaks" if breaks else name if helps else "neither"
    assert outcome_of(case) is expected[then.value, why]


@pytest.mark.parametrize(
    ("found", "then", "expected"),
    [
        pytest.param(
            outside_job(),
            "stop",
            {"then": UnmanagedThen.STOP, "could_be_queued": True, "can_be_adopted": True},
            id="a pool has its type",
        ),
        pytest.param(
            outside_job(ResourceConfig=on(M5)),
            "adopt",
            {"then": UnmanagedThen.ADOPT, "could_be_queued": False, "can_be_adopted": True},
            id="no pool has its type",
        ),
        pytest.param(
            outside_job(is_ours=True),
            "stop",
            {"then": UnmanagedThen.ADOPT, "could_be_queued": True, "can_be_adopted": True},
            id="ours is adopted, not stopped",
        ),
        pytest.param(
            outside_job(ResourceConfig={}),
            "adopt",
            {"then": UnmanagedThen.ADOPT, "could_be_queued": False, "can_be_adopted": False},
            id="serverless: nothing to count",
        ),
    ],
)
def test_what_the_outcome_depends_on_is_read_off_the_job(
    found: UnmanagedJob, then: str, expected: dict[str, Any]
) -> None:
    rules = policy(unmanaged_jobs={"then": then})
    case = case_of(found, rules, ask=ask_of(body_of(found)), breaks_a_rule=False)
    assert case == Case(runs=True, breaks_a_rule=False, **expected)


@pytest.mark.parametrize(
    ("unmanaged", "changes", "excepted"),
    [
        pytest.param({"then": "stop"}, {}, False, id="nothing speaks for it"),
        pytest.param({"then": "allow"}, {}, True, id="all are allowed"),
        pytest.param({"then": "allow"}, {"is_ours": True}, False, id="one with our tag never is"),
        pytest.param({"then": "stop"}, {"tuning_job_arn": "arn:x"}, True, id="a tuning job's"),
        pytest.param(
            {"then": "stop", "except_tuning_jobs": False},
            {"tuning_job_arn": "arn:x"},
            False,
            id="not excepted",
        ),
        pytest.param({"then": "stop", "except_principals": [ROLE]}, {}, True, id="its role"),
        pytest.param(
            {"then": "stop", "except_principals": ["arn:aws:iam::111122223333:role/vision-*"]},
            {},
            True,
            id="a pattern of its role",
        ),
        pytest.param(
            {"then": "stop", "except_principals": ["arn:aws:iam::999999999999:role/vision-training"]},
            {},
            False,
            id="another account's role of the name",
        ),
        pytest.param(
            {"then": "stop", "except_principals": ["arn:aws:iam::111122223333:role/vision"]},
            {},
            False,
            id="a role whose name it only begins with",
        ),
        pytest.param(
            {"then": "stop", "except_principals": ["arn:aws:iam::111122223333:role/ml/vision-training"]},
            {},
            False,
            id="a role of another path",
        ),
        pytest.param(
            {"then": "stop", "except_principals": ["arn:aws:iam::111122223333:role/vision-training"]},
            {"RoleArn": "arn:aws:iam::111122223333:role/service-role/vision-training"},
            True,
            id="no path written: any",
        ),
    ],
)
def test_the_policy_leaves_alone_whom_it_names(
    unmanaged: dict[str, Any],
    changes: dict[str, Any],
    excepted: bool,  # noqa: FBT001  a column
) -> None:
    rules = policy(unmanaged_jobs=unmanaged).governing.unmanaged_jobs
    assert is_excepted(outside_job(**changes), rules) is excepted


@pytest.mark.parametrize(
    ("tags", "teams", "team"),
    [
        pytest.param({"team": "vision"}, {}, "default", id="without teams"),
        pytest.param({"team": "speech"}, TEAMS, "speech", id="the one its tag names"),
        pytest.param({}, TEAMS, "vision", id="the first one that lists its role"),
        pytest.param({"team": "nobody"}, TEAMS, "vision", id="its tag names none"),
        pytest.param({}, {"teams": TEAMS["teams"][:1]}, "unmanaged", id="nobody's"),
    ],
)
def test_its_team_is_found_by_tag_and_role(tags: dict[str, str], teams: dict[str, Any], team: str) -> None:
    assert team_of(outside_job(tags), policy(**teams)) == team


# ---- what it asks for


def test_its_request_has_its_own_tags_and_none_of_ours_or_aws_s() -> None:
    tags = {"a": "1", "trainmaster:stack": "x", "trainmaster:retries": "2", "aws:createdBy": "y", "team": "t"}
    assert body_of(outside_job(tags))["Tags"] == [{"Key": "a", "Value": "1"}, {"Key": "team", "Value": "t"}]
    assert len(body_of(outside_job({f"t{n}": "" for n in range(50)}))["Tags"]) == 46


@pytest.mark.parametrize(
    ("changes", "stopping"),
    [
        pytest.param({}, {"MaxRuntimeInSeconds": 3600}, id="as written"),
        pytest.param({"StoppingCondition": None}, {"MaxRuntimeInSeconds": 86400}, id="SageMaker's default"),
        pytest.param(
            {"EnableManagedSpotTraining": True},
            {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 3600},
            id="a spot job that nobody gave a wait",
        ),
    ],
)
def test_its_request_always_has_an_end(changes: dict[str, Any], stopping: dict[str, int]) -> None:
    assert body_of(outside_job(**changes))["StoppingCondition"] == stopping


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param({}, id="none"),
        pytest.param({"InstanceType": P5}, id="no count"),
        pytest.param({"InstanceType": P5, "InstanceCount": 0}, id="a count of nothing"),
        pytest.param(
            {"InstancePreferences": [{"InstanceType": P5, "InstanceCount": 1}, {"InstanceType": G5}]},
            id="one preference without a count",
        ),
    ],
)
def test_what_cannot_be_counted_asks_for_nothing(resources: dict[str, Any]) -> None:
    assert ask_of(body_of(outside_job(ResourceConfig=resources))) is None


def test_groups_and_preferences_are_counted() -> None:
    groups = [{"InstanceGroupName": name, **on(kind, 2)} for name, kind in (("a", P5), ("b", G5))]
    found = ask_of(body_of(outside_job(ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 1})))
    assert found is not None
    assert found.vector == {Capacity(P5): 2, Capacity(G5): 2}
    preferences = {"InstancePreferences": [{"InstanceType": P5}, {"InstanceType": G5}], "InstanceCount": 3}
    found = ask_of(body_of(outside_job(ResourceConfig=preferences)))
    assert found is not None
    assert [shape.vector for shape in found.shapes] == [{Capacity(P5): 3}, {Capacity(G5): 3}]


def test_tags_that_say_nothing_are_no_options() -> None:
    tags = {"priority": "high", "trainmaster:retries": "2", "trainmaster:preemptible": "", "other": "1"}
    assert options_of(tags) == {"retries": 2}


# ---- adoption


def adopted(found: UnmanagedJob, *, team: str = "default", **more: Any) -> Job:
    ask = ask_of(body_of(found))
    assert ask is not None
    return adopted_job(found, ask, team=team, policy=policy(**more))


def test_the_job_looks_as_if_it_had_been_claimed_when_it_was_created() -> None:
    job = adopted(outside_job({"priority": "3"}, CheckpointConfig={"S3Uri": "s3://b/c"}))
    created = NOON - minutes(5)
    spec, live = job.spec, job.live
    assert live is not None
    assert (job.state, job.attempt, job.priority, job.started_at) == (JobState.RUNNING, 0, 3, created)
    assert (spec.name, spec.pool, spec.team, spec.submitted_by) == ("stray", "p5", "default", ROLE)
    assert (spec.submitted_at, spec.adopted, spec.preemptible) == (created, True, False)
    assert (spec.checkpoint_uri, spec.max_runtime) == ("s3://b/c", timedelta(hours=1))
    assert (live.training_job_name, live.number) == ("stray", 0)
    assert (live.claim.at, live.claim.lease_until, live.training_since) == (created, created, NOON)
    assert live.progress is not None
    assert (live.progress.status, live.progress.secondary_status) == ("InProgress", "Training")
    assert live.training_job_arn == "arn:aws:sagemaker:us-east-1:111122223333:training-job/stray"
    assert live.vector == {Capacity(P5): 1}
    assert (live.claim.usd_per_hour, live.claim.reserved_cents, live.claim.month) == (
        Decimal(100),
        10000,
        "2026-11",
    )


def test_its_place_is_that_of_its_creation_and_its_priority() -> None:
    """Three points are worth 90 minutes where an hour adds two."""
    job = adopted(outside_job({"priority": "3"}))
    assert job.score == int((NOON - minutes(95)).timestamp() * 1000)
    assert job.ranked_by == "age-1800000"


def test_its_priority_stays_below_the_ceiling_of_its_team() -> None:
    assert adopted(outside_job({"priority": "900"}), team="vision", **TEAMS).priority == 5
    assert adopted(outside_job({"priority": "900"}), team="unmanaged", **TEAMS).priority == 900


def test_types_without_a_pool_or_of_two_go_to_the_pool_of_unmanaged() -> None:
    assert adopted(outside_job(ResourceConfig=on(M5))).spec.pool == "-"
    groups = [{"InstanceGroupName": name, **on(kind)} for name, kind in (("a", P5), ("b", M5))]
    assert adopted(outside_job(ResourceConfig={"InstanceGroups": groups})).spec.pool == "-"


def test_a_price_that_nobody_knows_reserves_nothing() -> None:
    live = adopted(outside_job(ResourceConfig=on("ml.new.xlarge"))).live
    assert live is not None
    assert (live.claim.usd_per_hour, live.claim.reserved_cents) == (None, 0)


def test_a_spot_job_counts_as_spot() -> None:
    stopping = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}
    job = adopted(outside_job(EnableManagedSpotTraining=True, StoppingCondition=stopping))
    live = job.live
    assert live is not None
    assert live.vector == {Capacity(P5, CapacityType.SPOT): 1}
    assert (live.max_wait, job.spec.max_wait) == (timedelta(hours=2), timedelta(hours=2))


def test_of_preferences_it_holds_what_sagemaker_took() -> None:
    resources = {"InstancePreferences": [{"InstanceType": P5}, {"InstanceType": G5}], "InstanceCount": 1}
    undecided = adopted(outside_job(ResourceConfig=resources))
    taken = adopted(outside_job(ResourceConfig=resources, observation=seen("stray", selected_type=G5)))
    assert undecided.vector == {Capacity(P5): 1, Capacity(G5): 1}
    assert taken.vector == {Capacity(G5): 1}


def test_it_leaves_a_warm_pool_only_where_somebody_asked_for_one() -> None:
    kept = adopted(outside_job(ResourceConfig={**on(P5), "KeepAlivePeriodInSeconds": 600})).live
    plain = adopted(outside_job()).live
    assert kept is not None
    assert plain is not None
    assert (kept.keep_alive, plain.keep_alive) == (timedelta(minutes=10), None)


def test_options_for_its_retries_count() -> None:
    spec = adopted(outside_job({"trainmaster:retries": "2", "trainmaster:on_oom": "halve_batch"})).spec
    assert (spec.retries, spec.halves_batch) == (2, True)
    plain = adopted(outside_job()).spec
    assert (plain.retries, plain.halves_batch) == (None, False)


def test_alternatives_in_its_tags_are_no_shapes_of_it() -> None:
    spec = adopted(outside_job({"trainmaster:alternatives": f"{P5}=2 {P5}=4"})).spec
    assert [shape.vector for shape in spec.shapes] == [{Capacity(P5): 1}]
    assert all(isinstance(shape, Shape) for shape in spec.shapes)


def test_whoever_finds_it_makes_the_same_job_of_it() -> None:
    first, again = adopted(outside_job()), adopted(outside_job())
    other = adopted(outside_job(created_at=NOON))
    assert first == again
    assert len(first.spec.entry_id) == 26
    assert other.spec.entry_id != first.spec.entry_id


@pytest.mark.parametrize(
    ("is_ours", "noted", "kept"),
    [
        pytest.param(True, "a" * 64, True, id="ours, as it was submitted"),
        pytest.param(False, "a" * 64, False, id="not ours: anybody may write a tag"),
        pytest.param(True, "x" * 64, False, id="no hash"),
    ],
)
def test_a_forgotten_submission_keeps_the_identity_of_its_request(
    is_ours: bool,  # noqa: FBT001  a column
    noted: str,
    kept: bool,  # noqa: FBT001  a column
) -> None:
    found = outside_job({"trainmaster:spec": noted}, is_ours=is_ours)
    assert adopted(found).spec.body_hash == (noted if kept else body_hash(body_of(found)))
    assert note_of(found) is (RESTORED if is_ours else ADOPTED)
