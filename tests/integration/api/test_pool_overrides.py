"""Fields that a pool sets itself: in what is stored, judged, answered and started."""

from typing import Any

import pytest
from trainmaster.api import build_api
from trainmaster.core.jobs.instances import Choice, lane_text

from tests.bodies import body, tag_list
from tests.integration.api.conftest import ADMIN, DOCUMENT, G5, OWN, P5, Api

ROLE = f"arn:aws:iam::{OWN}:role/p5-training"
NETWORK = {"subnets": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d", "sg-1a1b2c3d"]}
VPC = {"SecurityGroupIds": ["sg-0a1b2c3d", "sg-1a1b2c3d"], "Subnets": ["subnet-0a1b2c3d"]}
NAME = "job1-2026-01-01"


def put(api: Api, overrides: dict[str, Any], **more: Any) -> Any:
    pools = [{"name": "p5", "capacity": {P5: 2}, "overrides": overrides}, {"name": "g5", "capacity": {G5: 1}}]
    return api.call("PUT", "/policy", {**DOCUMENT, "pools": pools, **more}, user=ADMIN)


def add(api: Api, request: dict[str, Any]) -> Any:
    return api.call("POST", "/add-job", request)


def test_a_pool_sets_role_network_and_tags_of_its_jobs(api: Api) -> None:
    tags = {"cost-center": "research-7", "owner": "ml"}
    assert put(api, {"role_arn": ROLE, **NETWORK, "tags": tags}).status == 200
    request = body(Tags=[*body()["Tags"], *tag_list({"owner": "ada"})])
    answer = add(api, request)
    assert answer.status == 201
    stored = api.reader.request(NAME)
    assert stored is not None
    assert (stored["RoleArn"], stored["VpcConfig"]) == (ROLE, VPC)
    tags_by_key = {tag["Key"]: tag["Value"] for tag in stored["Tags"]}
    assert tags_by_key == {"priority": "3", **tags}
    fields = ["RoleArn", "VpcConfig", "Tags.owner", "Tags.cost-center"]
    assert [warning["field"] for warning in answer.json["warnings"]] == fields
    assert answer.json["warnings"][0]["message"] == f"is set by pool p5: {ROLE}"
    assert api.get(f"/jobs/{NAME}").json["set_by_pool"] == fields
    assert {key: value for key, value in stored.items() if key not in {"RoleArn", "VpcConfig", "Tags"}} == {
        key: value for key, value in request.items() if key not in {"RoleArn", "VpcConfig", "Tags"}
    }


def with_volume(size: int | None) -> dict[str, Any]:
    volume = {} if size is None else {"VolumeSizeInGB": size}
    return body(ResourceConfig={"InstanceType": P5, "InstanceCount": 1, **volume})


@pytest.mark.parametrize("size", [50, None])
def test_a_pool_sets_the_volume_of_its_jobs(api: Api, size: int | None) -> None:
    put(api, {"volume_size_in_gb": 200})
    answer = add(api, with_volume(size))
    assert answer.status == 201
    assert answer.json["warnings"][0]["field"] == "ResourceConfig.VolumeSizeInGB"
    assert answer.json["warnings"][0]["message"] == "is set by pool p5: 200"
    assert api.reader.request(NAME)["ResourceConfig"] == with_volume(200)["ResourceConfig"]
    assert api.get(f"/jobs/{NAME}").json["set_by_pool"] == ["ResourceConfig.VolumeSizeInGB"]


def test_a_volume_that_is_larger_than_the_pools_is_refused(api: Api) -> None:
    put(api, {"volume_size_in_gb": 200})
    answer = add(api, with_volume(201))
    assert (answer.status, answer.fields) == (422, ["ResourceConfig.VolumeSizeInGB"])
    error = answer.json["errors"][0]
    assert (error["message"], error["hint"]) == ("is 201, but the pool's jobs have 200", "write at most 200")
    assert add(api, with_volume(200)).status == 201


@pytest.mark.parametrize("size", [0, -1, 16_385, "200", 1.5, True])
def test_a_volume_that_no_instance_can_have_is_refused_in_the_policy(api: Api, size: object) -> None:
    answer = put(api, {"volume_size_in_gb": size})
    assert (answer.status, answer.fields) == (422, ["pools[0].overrides.volume_size_in_gb"])
    assert "1 to 16384" in answer.json["errors"][0]["message"]


def test_a_request_that_has_it_all_is_not_changed(api: Api) -> None:
    put(api, {"role_arn": body()["RoleArn"]})
    answer = add(api, body())
    assert (answer.status, answer.json["warnings"]) == (201, [])
    assert api.get(f"/jobs/{NAME}").json["set_by_pool"] == []


def test_the_dry_run_says_what_the_pool_sets(api: Api) -> None:
    put(api, {"role_arn": ROLE})
    answer = api.call("POST", "/add-job", body(), query={"dry_run": "true"})
    assert [warning["field"] for warning in answer.json["warnings"]] == ["RoleArn"]


def test_the_same_request_again_is_the_same_job_though_the_pool_sets_something_else(api: Api) -> None:
    put(api, {"role_arn": ROLE})
    assert add(api, body()).status == 201
    put(api, {"role_arn": f"{ROLE}-2"})
    again = add(api, body())
    assert again.status == 200
    stored = api.reader.request(NAME)
    assert stored is not None
    assert stored["RoleArn"] == ROLE, "jobs that wait keep what they were accepted with"


def test_rules_judge_the_request_as_the_pool_has_it(api: Api) -> None:
    put(api, NETWORK, rules={"required_tags": {"tags": ["cost-center"]}})
    assert add(api, body()).status == 422
    put(
        api,
        NETWORK | {"tags": {"cost-center": "research-7"}},
        rules={"required_tags": {"tags": ["cost-center"]}},
    )
    assert add(api, body()).status == 201


def test_a_team_may_not_run_under_the_role_that_the_pool_sets(api: Api) -> None:
    teams = [DOCUMENT["teams"][0] | {"roles": [body()["RoleArn"]]}, DOCUMENT["teams"][1]]
    put(api, {"role_arn": ROLE}, teams=teams)
    answer = add(api, body())
    assert (answer.status, answer.fields) == (422, ["RoleArn"])


def test_another_pool_sets_nothing(api: Api) -> None:
    put(api, {"role_arn": ROLE})
    request = body(ResourceConfig={"InstanceType": G5, "InstanceCount": 1, "VolumeSizeInGB": 50})
    assert add(api, request).json["warnings"] == []


def test_an_alternative_in_another_subnet_is_refused(api: Api) -> None:
    put(api, NETWORK)
    alternatives = f"{P5}=1@subnet-0fffffff {P5}=1@subnet-0a1b2c3d"
    vpc = {"SecurityGroupIds": ["sg-0a1b2c3d"], "Subnets": ["subnet-0fffffff", "subnet-0a1b2c3d"]}
    tags = tag_list({"trainmaster:alternatives": alternatives})
    answer = add(api, body(VpcConfig=vpc, Tags=tags))
    assert (answer.status, answer.fields) == (422, ["Tags[0].Value"])
    assert "subnet-0fffffff" in answer.json["errors"][0]["message"]


def any_subnet(*subnets: str, alternatives: str = f"{P5}=1:spot@any {P5}=1@any") -> dict[str, Any]:
    vpc = {"VpcConfig": {"SecurityGroupIds": ["sg-0a1b2c3d"], "Subnets": list(subnets)}} if subnets else {}
    stopping = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}
    spot = {"EnableManagedSpotTraining": True, "StoppingCondition": stopping}
    return body(Tags=tag_list({"trainmaster:alternatives": alternatives}), **vpc, **spot)


def with_spot(api: Api, **pool: Any) -> None:
    pools = [{"name": "p5", "capacity": {P5: 2}, "spot_capacity": {P5: 2}, **pool}]
    assert api.call("PUT", "/policy", {**DOCUMENT, "pools": pools}, user=ADMIN).status == 200


def test_any_subnet_stands_for_each_of_the_request(api: Api) -> None:
    with_spot(api)
    assert add(api, any_subnet("subnet-0a", "subnet-0b")).status == 201
    assert [lane_text((shape,), Choice.FIRST_FIT) for shape in api.job(NAME).shapes] == [
        f"{P5}:spot=1@subnet-0a",
        f"{P5}:spot=1@subnet-0b",
        f"{P5}=1@subnet-0a",
        f"{P5}=1@subnet-0b",
    ]


def test_any_subnet_stands_for_those_that_the_pool_sets(api: Api) -> None:
    network = {"subnets": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}
    with_spot(api, overrides=network)
    request = any_subnet(alternatives=f"{P5}=1@subnet-1a1b2c3d {P5}=1@any")
    assert add(api, request).status == 201
    subnets = [shape.subnet for shape in api.job(NAME).shapes]
    assert subnets == ["subnet-1a1b2c3d", "subnet-0a1b2c3d"], "each once, where it comes first"


def test_any_subnet_of_none_is_refused(api: Api) -> None:
    with_spot(api)
    answer = add(api, any_subnet())
    assert (answer.status, answer.fields) == (422, ["Tags[0].Value"])
    assert "VpcConfig" in answer.json["errors"][0]["message"]


def test_more_shapes_than_a_pass_tries_are_refused(api: Api) -> None:
    with_spot(api)
    subnets = [f"subnet-{number:08x}" for number in range(16)]
    three = f"{P5}=1:spot@any {P5}=2:spot@any {P5}=1@any"
    answer = add(api, any_subnet(*subnets, alternatives=three))
    assert (answer.status, answer.fields) == (422, ["Tags[0].Value"])
    assert "48 shapes, at most 40" in answer.json["errors"][0]["message"]


def test_too_many_tags_together_are_refused(api: Api) -> None:
    put(api, {"tags": {f"pool-{number}": "1" for number in range(20)}})
    many = tag_list({f"own-{number}": "1" for number in range(27)})
    answer = add(api, body(Tags=many))
    assert (answer.status, answer.fields) == (422, ["Tags"])
    assert add(api, body(Tags=many[:26])).status == 201


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        pytest.param({"role_arn": "p5-training"}, "role_arn", id="no ARN"),
        pytest.param({"role_arn": f"arn:aws:iam::{OWN}:role/*"}, "role_arn", id="pattern"),
        pytest.param({"subnets": ["subnet-0a1b2c3d"]}, "security_group_ids", id="subnets alone"),
        pytest.param({"security_group_ids": ["sg-0a1b2c3d"]}, "subnets", id="groups alone"),
        pytest.param(NETWORK | {"subnets": ["vpc-0a1b2c3d"]}, "subnets[0]", id="no subnet"),
        pytest.param(
            NETWORK | {"subnets": [f"subnet-{number:08x}" for number in range(17)]},
            "subnets",
            id="17 subnets",
        ),
        pytest.param({"tags": {"trainmaster:priority": "9"}}, 'tags["trainmaster:priority"]', id="an option"),
        pytest.param({"tags": {"team": "vision"}}, "tags.team", id="the team"),
        pytest.param({"tags": {"aws:owner": "me"}}, 'tags["aws:owner"]', id="a tag of AWS"),
        pytest.param({"tags": {f"t{number}": "1" for number in range(21)}}, "tags", id="21 tags"),
        pytest.param({"tags": {"owner": "a;b"}}, "tags.owner", id="a value that no tag has"),
        pytest.param({"role": ROLE}, "role", id="misspelled"),
    ],
)
def test_a_policy_that_sets_what_cannot_be_is_refused(
    api: Api, overrides: dict[str, Any], field: str
) -> None:
    answer = put(api, overrides)
    assert answer.status == 422
    assert answer.fields == [f"pools[0].overrides.{field}"]


def test_a_role_that_the_stack_cannot_pass_is_refused(api: Api) -> None:
    may_pass = (f"arn:aws:iam::{OWN}:role/*-training", f"arn:aws:iam::{OWN}:role/other")
    api.handle = build_api(api.outside(training_role_arns=may_pass))
    answer = put(api, {"role_arn": f"{ROLE}-2"})
    assert (answer.status, answer.fields) == (422, ["pools[0].overrides.role_arn"])
    assert "TrainingRoleArns" in answer.json["errors"][0]["message"]
    assert put(api, {"role_arn": ROLE}).status == 200
    launchers = [
        team | {"launcher_role": f"arn:aws:iam::{OWN}:role/launcher-{team['name']}"}
        for team in DOCUMENT["teams"]
    ]
    assert put(api, {"role_arn": f"{ROLE}-2"}, teams=launchers).status == 200, "each passes its own"
