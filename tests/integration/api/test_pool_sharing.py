"""GET /pools?sharing=true: jobs that could use each other's warm pools, over rows of the real table."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.adapters.dynamodb.warm_histories import warm_history_key
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.snapshot import WarmPool

from tests.builders import NOON, claimed, minutes, seen
from tests.ends import observed
from tests.integration.api.conftest import ADA, ADMIN, BOB, BOTH, DOCUMENT, P5, Api

IN_TURN = ((0, 10), (40, 50), (80, 90))
BETWEEN = ((12, 22), (52, 62), (92, 102))
ROLES = tuple(f"arn:aws:iam::111122223333:role/{name}" for name in ("vision-training", "speech-training"))


@pytest.fixture(autouse=True)
def keeps_warm(api: Api) -> None:
    pools = [{"name": "p5", "capacity": {P5: 2}, "warm_pool": {"retain": "10m"}}, DOCUMENT["pools"][1]]
    assert api.call("PUT", "/policy", {**DOCUMENT, "pools": pools}, user=ADMIN).status == 200


def ran(api: Api, name: str, start: int, end: int, *, user: str = ADA, **fields: Any) -> None:
    """A job starts in the minute in which it is submitted, trains after 4 of them, and leaves a warm pool."""
    api.now = NOON + minutes(start)
    assert api.submit(name, user=user, **fields).status == 201
    job = api.job(name)
    (live,) = api.store.commit(
        [Change(before=job, after=claimed(job, name, now=api.now, keep_alive=minutes(10)))], at=api.now
    )
    live = api.change(name, steps.recorded(live, training_job_arn="arn:x", now=api.now))
    over = NOON + minutes(end)
    news = seen(
        name,
        status="Completed",
        secondary="Completed",
        training_since=api.now + minutes(4),
        ended_at=over,
    )
    change = observed(live, news, now=over)
    assert change is not None
    assert change.ended is not None
    assert live.live is not None
    key = live.live.shape.warm_key
    assert key is not None
    left = WarmPool(
        training_job_name=name,
        team=job.spec.team,
        vector=job.spec.vector,
        warm_key=key,
        since=over,
        expires_at=over + minutes(10),
    )
    bill = replace(change.ended.bill, instance_seconds=60 * (end - start) * live.live.shape.instances)
    ended = replace(change.ended, bill=bill, trained=over - api.now - minutes(4))
    api.store.commit([replace(change, leaves_warm=left, ended=ended)], at=over)
    api.now = over
    api.store.change_warm("p5", left, None, at=over)


def volume(size: int) -> dict[str, Any]:
    return {"ResourceConfig": {"InstanceType": P5, "InstanceCount": 1, "VolumeSizeInGB": size}}


def two_teams(api: Api, *, mine: dict[str, Any], others: dict[str, Any]) -> None:
    for number, (first, second) in enumerate(zip(IN_TURN, BETWEEN, strict=True)):
        ran(api, f"vision-{number}", *first, **mine)
        ran(api, f"speech-{number}", *second, user=BOB, **others)


def sharing(api: Api, user: str = ADMIN) -> list[dict[str, Any]]:
    answer = api.get("/pools", user=user, sharing="true", pool="p5")
    assert answer.status == 200
    found: list[dict[str, Any]] = answer.json["pools"][0]["sharing"]
    return found


def test_two_teams_whose_jobs_differ_only_in_volume_could_share(api: Api) -> None:
    two_teams(api, mine=volume(50), others=volume(200))
    (advice,) = sharing(api)
    assert {key: value for key, value in advice.items() if key not in {"because", "todo"}} == {
        "differ_in": ["volume"],
        "instance_type": P5,
        "instances": 1,
        "kinds": [
            {"teams": ["speech"], "last_job": "speech-2", "volume_size_in_gb": 200},
            {"teams": ["vision"], "last_job": "vision-2", "volume_size_in_gb": 50},
        ],
        "since": "2026-11-02T12:00:00.000Z",
        "starts": 6,
        "warm_now": 0,
        "warm_together": 3,
        "saved_instance_seconds": 3 * 210,
        "idle_instance_seconds": -3 * 480,
        "saved_usd": advice["saved_usd"],
    }
    assert advice["saved_usd"] > 0
    assert advice["because"].startswith(
        f"Jobs of team speech (200 GB) and team vision (50 GB) on 1x {P5} differ only in the size of the"
        " volume. Of their 6 starts since 2026-11-02 12:00 UTC, 0 could use instances that their own kind had"
        " left warm, and 3 if they were alike: 10m30s less start-up and 24m00s less of idle instances ("
    )
    assert "overrides.volume_size_in_gb: 200 for all jobs of pool p5" in advice["todo"]
    assert "also another team's, has left in /opt/ml/sagemaker/warmpoolcache" in advice["todo"]


def test_two_teams_with_roles_of_their_own_are_told_what_sharing_one_means(api: Api) -> None:
    two_teams(api, mine={"RoleArn": ROLES[0]}, others={"RoleArn": ROLES[1]})
    (advice,) = sharing(api)
    assert advice["differ_in"] == ["role"]
    assert {kind["role_arn"] for kind in advice["kinds"]} == set(ROLES)
    assert "overrides.role_arn for all jobs of pool p5" in advice["todo"]
    assert "every right of that role" in advice["todo"]


def test_a_member_sees_only_kinds_of_jobs_that_are_the_own_teams_alone(api: Api) -> None:
    two_teams(api, mine=volume(50), others=volume(200))
    assert (sharing(api, ADA), sharing(api, BOB)) == ([], [])
    assert len(sharing(api, BOTH)) == 1, "a member of both teams"


def test_a_kind_of_jobs_that_another_team_submits_too_is_no_members(api: Api) -> None:
    for number, (first, second) in enumerate(zip(IN_TURN, BETWEEN, strict=True)):
        ran(api, f"a-{number}", *first, **volume(50))
        ran(api, f"b-{number}", *second, **volume(200))
    (own,) = sharing(api, ADA)
    assert "another team" not in own["todo"]
    ran(api, "c", 120, 130, user=BOB, **volume(200))
    assert sharing(api, ADA) == []
    (seen_by_admin,) = sharing(api)
    assert sorted(kind["teams"] for kind in seen_by_admin["kinds"]) == [["speech", "vision"], ["vision"]]


def test_without_the_parameter_nothing_more_is_read_or_said(api: Api) -> None:
    two_teams(api, mine=volume(50), others=volume(200))
    (pool,) = api.get("/pools", user=ADMIN, pool="p5").json["pools"]
    assert "sharing" not in pool
    (pool,) = api.get("/pools", user=ADMIN, pool="p5", sharing="false").json["pools"]
    assert "sharing" not in pool


def test_a_pool_costs_one_query_and_one_batch_more(api: Api) -> None:
    two_teams(api, mine=volume(50), others=volume(200))
    calls: Counter[str] = Counter()
    api.client.meta.events.register("before-call.dynamodb", lambda model, **_: calls.update([model.name]))
    api.get("/pools", user=ADMIN, pool="p5")
    without = Counter(calls)
    calls.clear()
    assert len(sharing(api)) == 1
    assert calls - without == {"Query": 1, "BatchGetItem": 1}


def test_neither_true_nor_false_is_refused(api: Api) -> None:
    answer = api.get("/pools", sharing="yes")
    assert (answer.status, answer.fields) == (400, ["query.sharing"])


def rows(api: Api) -> list[str]:
    return sorted(api.reader.warm_histories("p5"))


def spoil(api: Api, key: str, expression: str, values: dict[str, Any] | None = None) -> None:
    pk, sk = warm_history_key("p5", key)
    more = {"ExpressionAttributeValues": values} if values else {}
    known = {"#job": "job", "#start": "s#0", "#team": "t#0"}
    names = {alias: name for alias, name in known.items() if alias in expression}
    api.client.update_item(
        TableName=api.table,
        Key={"pk": {"S": pk}, "sk": {"S": sk}},
        UpdateExpression=expression,
        ExpressionAttributeNames=names,
        **more,
    )


def test_a_row_of_an_earlier_release_is_read_and_not_advised_on(api: Api) -> None:
    two_teams(api, mine=volume(50), others=volume(200))
    spoil(api, rows(api)[0], "REMOVE #job")
    assert len(api.reader.warm_histories("p5")) == 2
    assert sharing(api) == []
    assert api.register.noted(now=api.now) == ()


def test_a_start_of_an_unknown_team_is_for_admins_alone(api: Api) -> None:
    two_teams(api, mine=volume(50), others=volume(200))
    spoil(api, rows(api)[0], "REMOVE #team")
    assert len(sharing(api)) == 1
    assert sharing(api, BOTH) == [], "an earlier release noted it"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("SET #job = :v", {"N": "7"}),
        ("SET #start = :v", {"S": "soon"}),
        ("SET #team = :v", {"L": [{"S": "vision"}]}),
    ],
)
def test_a_row_that_cannot_be_understood_is_left_out_and_reported(
    api: Api, expression: str, value: dict[str, Any]
) -> None:
    two_teams(api, mine=volume(50), others=volume(200))
    broken = rows(api)[0]
    spoil(api, broken, expression, {":v": value})
    assert sharing(api) == []
    assert [row.key for row in api.register.noted(now=api.now)] == [f"WH#p5/{broken}"]


def test_a_job_that_is_gone_or_another_by_now_is_not_advised_on(api: Api) -> None:
    two_teams(api, mine=volume(50), others=volume(200))
    keys = rows(api)
    spoil(api, keys[0], "SET #job = :v", {":v": {"S": "deleted-by-now"}})
    assert sharing(api) == []
    other = api.reader.warm_histories("p5")[keys[1]].job
    assert other is not None
    spoil(api, keys[0], "SET #job = :v", {":v": {"S": other}})
    assert sharing(api) == [], "that job has another key"


def test_kinds_of_jobs_that_are_long_past_are_not_compared(api: Api) -> None:
    two_teams(api, mine=volume(50), others=volume(200))
    api.now += timedelta(days=91)
    assert sharing(api) == []


def test_a_row_stays_below_the_kilobyte_that_one_write_unit_pays_for(api: Api) -> None:
    for number in range(18):
        ran(api, f"{'long-name-of-a-job-' * 2}{number}", 40 * number, 40 * number + 10, **volume(50))
    (item,) = api.client.query(
        TableName=api.table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": "WH#p5"}},
    )["Items"]
    size = sum(len(name) + size_of(value) for name, value in item.items())
    assert 600 < size < 1024, size


def size_of(value: dict[str, Any]) -> int:
    """Bytes of an attribute's value. Source: DynamoDB developer guide, item sizes."""
    ((kind, content),) = value.items()
    if kind == "N":
        return len(str(content).lstrip("-").rstrip("0")) // 2 + 2
    if kind == "L":
        return 3 + sum(1 + size_of(part) for part in content)
    return len(str(content))


def test_several_instances_save_that_much_each(api: Api) -> None:
    def wide(size: int) -> dict[str, Any]:
        return {"ResourceConfig": {"InstanceType": P5, "InstanceCount": 2, "VolumeSizeInGB": size}}

    two_teams(api, mine=wide(50), others=wide(200))
    (advice,) = sharing(api)
    assert advice["instances"] == 2
    assert advice["saved_instance_seconds"] == 2 * 3 * 210
    assert "10m30s less start-up on each of 2 instances" in advice["because"]


def test_a_job_in_no_network_is_said_to_have_none(api: Api) -> None:
    network = {"VpcConfig": {"Subnets": ["subnet-0a1b2c3d"], "SecurityGroupIds": ["sg-0a1b2c3d"]}}
    two_teams(api, mine={}, others=network)
    (advice,) = sharing(api)
    assert advice["differ_in"] == ["network"]
    assert "team vision (no VPC)" in advice["because"]
    assert "team speech (subnet-0a1b2c3d, sg-0a1b2c3d)" in advice["because"]
    assert "reach whatever can be reached from there" in advice["todo"]
