"""O10, O12, C6, C7, C14: what AWS takes is taken, and what its author may not mean is said."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.bodies import body, tag_list
from tests.integration.api.conftest import ADA, DOCUMENT, Answer, Api

NewApi = Callable[..., Api]
RUNTIME = "StoppingCondition.MaxRuntimeInSeconds"
BOTH = pytest.mark.parametrize("query", [None, {"dry_run": "true"}], ids=["submission", "dry run"])


@pytest.fixture
def new_api(cloud: Any) -> Iterator[NewApi]:
    """An API under the usual policy with some keys changed."""
    made: list[Api] = []

    def make(**changes: Any) -> Api:
        made.append(Api(cloud, DOCUMENT | changes))
        return made[-1]

    yield make
    for api in made:
        cloud.delete_table(TableName=api.table)


def send(api: Api, request: dict[str, Any], query: dict[str, str] | None = None) -> Answer:
    answer = api.call("POST", "/add-job", request, user=ADA, query=query)
    assert answer.status == (200 if query else 201), answer
    return answer


@BOTH
@pytest.mark.parametrize("stopping", [None, {}], ids=["no StoppingCondition", "an empty one"])
def test_O10_a_job_without_a_run_time_has_sagemakers_own(
    api: Api, stopping: dict[str, int] | None, query: dict[str, str] | None
) -> None:
    answer = send(api, body(TrainingJobName="a", StoppingCondition=stopping, Tags=None), query)
    (warning,) = answer.json["warnings"]
    assert warning["field"] == RUNTIME
    assert warning["message"] == ("is not given: the job is stopped after 86400 s, SageMaker's own default")
    if query is None:
        assert api.job("a").spec.max_runtime.total_seconds() == 86_400
        assert api.reader.request("a")["StoppingCondition"] == {"MaxRuntimeInSeconds": 86_400}


def test_O10_the_default_is_what_the_rule_allows_where_that_is_less(new_api: NewApi) -> None:
    api = new_api(rules={"max_runtime": "12h"})
    answer = send(api, body(TrainingJobName="a", StoppingCondition=None, Tags=None))
    (warning,) = answer.json["warnings"]
    assert warning["message"] == (
        "is not given: the job is stopped after 43200 s, which is what max_runtime allows"
    )
    assert api.job("a").spec.max_runtime.total_seconds() == 43_200


def test_O10_the_same_request_again_is_the_same_job_whatever_the_default_is_by_then(new_api: NewApi) -> None:
    api = new_api()
    request = body(TrainingJobName="a", StoppingCondition=None, Tags=None)
    send(api, request)
    document = DOCUMENT | {"rules": {"max_runtime": "1h"}}
    api.policies.put(document, pools=["p5"], replaces=api.policies.current())
    again = api.call("POST", "/add-job", request)
    assert again.status == 200
    assert api.job("a").spec.max_runtime.total_seconds() == 86_400


def test_O10_C14_whole_numbers_with_a_decimal_point_are_taken_as_such(api: Api) -> None:
    request = body(
        TrainingJobName="a",
        StoppingCondition={"MaxRuntimeInSeconds": 86400.0},
        ResourceConfig={"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1.0, "VolumeSizeInGB": 30.0},
    )
    assert send(api, request).json["warnings"] == []
    stored = api.reader.request("a")
    assert repr(stored["StoppingCondition"]) == "{'MaxRuntimeInSeconds': 86400}"
    assert repr(stored["ResourceConfig"]["InstanceCount"]) == "1"
    assert api.call("POST", "/add-job", request).status == 200
    whole: dict[str, Any] = {"StoppingCondition": {"MaxRuntimeInSeconds": 86400}}
    whole["ResourceConfig"] = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30}
    assert api.call("POST", "/add-job", request | whole).status == 200  # the same request


@BOTH
@pytest.mark.parametrize(
    ("key", "option"),
    [
        ("Priority", "priority"),
        ("PRIORITY", "priority"),
        ("priority ", "priority"),
        ("Team", "team"),
        ("preemptible", "trainmaster:preemptible"),
        ("retries", "trainmaster:retries"),
    ],
)
def test_O12_C7_a_tag_that_is_nearly_ours_is_a_warning(
    api: Api, key: str, option: str, query: dict[str, str] | None
) -> None:
    answer = send(api, body(TrainingJobName="a", Tags=tag_list({key: "900"})), query)
    (warning,) = answer.json["warnings"]
    assert (warning["field"], warning["hint"]) == (
        "Tags[0].Key",
        f"did you mean {option}? write it exactly so",
    )
    if query is None:
        assert answer.json["job"]["priority"] == 0
