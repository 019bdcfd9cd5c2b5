"""What a world's limits refuse, and in which words."""

import pytest

from local.worlds import HARSH, KIND, changed, keeps_warm, refusal

LIMITED = changed(KIND, {"quotas": {"ml.p5.48xlarge": 4}})


def request(count=1, instance_type="ml.m5.xlarge", *, keep_alive=None, runtime=3600, **more):
    resources = {"InstanceType": instance_type, "InstanceCount": count}
    if keep_alive is not None:
        resources["KeepAlivePeriodInSeconds"] = keep_alive
    return {"ResourceConfig": resources, "StoppingCondition": {"MaxRuntimeInSeconds": runtime}} | more


def words(world, asked, used=None):
    refused = refusal(world, asked, used or {})
    return None if refused is None else (refused.code, refused.message)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(request(20), id="instances"),
        pytest.param(request(keep_alive=3600), id="keep-alive"),
        pytest.param(request(runtime=432_000), id="run time"),
    ],
)
def test_what_is_at_the_limit_is_accepted(asked):
    assert refusal(HARSH, asked, {}) is None


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        pytest.param(
            request(21), "'Maximum number of instances per training job' is 20 Instances", id="wide"
        ),
        pytest.param(
            request(21, EnableManagedSpotTraining=True),
            "'Maximum number of instances per spot training job' is 20 Instances, with current "
            "utilization of 0 Instances and a request delta of 21 Instances. ",
            id="wide spot",
        ),
        pytest.param(
            request(runtime=864_000),
            "'Longest run time for a training job' is 432000 Seconds, with current utilization of 0 Seconds "
            "and a request delta of 864000 Seconds. ",
            id="long",
        ),
        pytest.param(
            request(keep_alive=7200), "'Keep alive period for cluster reuse' is 3600 Seconds", id="kept long"
        ),
        pytest.param(
            request(instance_type="ml.p6e-gb200.36xlarge"),
            "The requested resource training-job/ml.p6e-gb200.36xlarge is not available in this region",
            id="a type that the Region lacks",
        ),
    ],
)
def test_the_harsh_world_refuses_what_the_kind_one_takes(asked, says):
    code, message = words(HARSH, asked)
    assert code == "ResourceLimitExceeded"
    assert says in message
    assert refusal(KIND, asked, {}) is None


def test_a_quota_says_what_is_used_and_what_was_asked_for():
    used = {("on-demand", "ml.p5.48xlarge"): 3, ("spot", "ml.p5.48xlarge"): 9}
    assert words(LIMITED, request(1, "ml.p5.48xlarge"), used) is None
    assert words(LIMITED, request(2, "ml.p5.48xlarge"), used)[1] == (
        "The account-level service limit 'ml.p5.48xlarge for training job usage' is 4 Instances, with "
        "current utilization of 3 Instances and a request delta of 2 Instances. Please use AWS Service "
        "Quotas to request an increase for this quota. If AWS Service Quotas is not available, contact AWS "
        "support to request an increase for this quota."
    )


def test_a_quota_of_spot_is_another():
    asked = request(1, "ml.p5.48xlarge", EnableManagedSpotTraining=True)
    assert words(LIMITED, asked, {("on-demand", "ml.p5.48xlarge"): 4}) is None
    assert (
        "'ml.p5.48xlarge for spot training job usage'"
        in words(LIMITED, asked, {("spot", "ml.p5.48xlarge"): 4})[1]
    )


def test_the_groups_of_a_cluster_are_added_up():
    groups = [
        {"InstanceGroupName": "a", "InstanceType": "ml.p5.48xlarge", "InstanceCount": 3},
        {"InstanceGroupName": "b", "InstanceType": "ml.m5.xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "c", "InstanceType": "ml.p5.48xlarge", "InstanceCount": 2},
    ]
    assert "request delta of 5 Instances" in words(LIMITED, {"ResourceConfig": {"InstanceGroups": groups}})[1]


def test_of_preferences_the_first_counts_and_none_may_be_missing():
    choices = [{"InstanceType": "ml.m5.xlarge"}, {"InstanceType": "ml.p5.48xlarge"}]
    asked = {"ResourceConfig": {"InstanceCount": 8, "InstancePreferences": choices}}
    assert words(LIMITED, asked) is None
    gone = changed(LIMITED, {"missing_types": ["ml.p5.48xlarge"]})
    assert "training-job/ml.p5.48xlarge is not available" in words(gone, asked)[1]


def test_warm_instances_are_kept_as_far_as_their_quota_goes():
    world = changed(KIND, {"warm_pool_quota": 4})
    assert keeps_warm(world, wanted=2, kept=2)
    assert not keeps_warm(world, wanted=3, kept=2)
    assert not keeps_warm(HARSH, wanted=1, kept=0)
    assert keeps_warm(KIND, wanted=100, kept=100)
