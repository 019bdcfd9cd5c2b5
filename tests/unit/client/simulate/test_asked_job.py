from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.planning.width_worth import PER_DOUBLING
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.io.asked_job import asked_job

from tests.bodies import body
from tests.unit.client.simulate.hand_made import history, job

HISTORY = history(job("a", "vision"), job("b", "language"), job("c", "language"))


def test_a_few_fields_are_enough() -> None:
    found = asked_job({"instance_type": "ml.p5.48xlarge", "instance_count": 2}, HISTORY, source="job.json")
    assert found.instances == {"ml.p5.48xlarge": 2}
    assert (found.team, found.capacity_type, found.priority) == ("language", "on-demand", 0)
    assert found.max_runtime == timedelta(days=1)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param({}, "job.json: instance_type is missing.", id="nothing"),
        pytest.param(
            {"instance_type": "x", "priority": -1}, "priority is not a whole number from 0 to 1000", id="low"
        ),
        pytest.param(
            {"instance_type": "x", "instance_count": True}, "instance_count is not a whole", id="a truth"
        ),
        pytest.param(
            {"instance_type": "x", "gpus": 8}, "'gpus' is not a field of it; there are name,", id="unknown"
        ),
        pytest.param({"instance_type": "x", "capacity_type": "cheap"}, "is not on-demand or spot", id="kind"),
        pytest.param({"TrainingJobName": "x"}, "job.json: ", id="half a request"),
        pytest.param(
            {"instance_type": "x", "instance_count": 8, "elastic": "8-2"},
            "elastic begins with 8, more than its end, 2: write 2-8",
            id="widths backwards",
        ),
        pytest.param(
            {"instance_type": "x", "elastic": 4},
            "elastic is not a text; write e.g. 2-8",
            id="widths as a number",
        ),
        pytest.param(
            {"instance_type": "x", "instance_count": 16, "elastic": "2-8"},
            "instance_count is 16, but elastic goes up to 8; write instance_count 8",
            id="another count",
        ),
        pytest.param(
            {"instance_type": "x", "instance_count": 8, "elastic": "2-8", "capacity_type": "spot"},
            "elastic is not for spot",
            id="elastic on spot",
        ),
        pytest.param(
            {"instance_type": "x", "plan": "always"}, "plan is not first, only or never", id="use of plans"
        ),
        pytest.param(
            {"instance_type": "x", "plan": "only", "capacity_type": "spot"},
            "plan only is not for spot",
            id="plan on spot",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_field(document: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        asked_job(document, HISTORY, source="job.json")
    assert said in str(raised.value)


def request(instances: int = 8, **tags: str) -> dict[str, Any]:
    tagged = [{"Key": f"trainmaster:{key}", "Value": value} for key, value in tags.items()]
    made = body(Tags=tagged)
    return made | {"ResourceConfig": made["ResourceConfig"] | {"InstanceCount": instances}}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(request(elastic="2-8:2"), id="request"),
        pytest.param({"instance_type": "x", "instance_count": 8, "elastic": "2-8:2"}, id="fields"),
    ],
)
def test_widths_are_those_of_the_tag_with_the_speeds_that_the_planner_assumes(
    document: dict[str, Any],
) -> None:
    elastic = asked_job(document, HISTORY, source="job.json").elastic
    assert elastic is not None
    assert elastic.widths.counts == (2, 4, 6, 8)
    assert elastic.speeds[8] == 1
    assert elastic.speeds[4] == pytest.approx(1 / PER_DOUBLING)


@pytest.mark.parametrize(
    ("use", "capacity_type", "avoids"),
    [("never", "on-demand", True), ("first", "on-demand", False), ("only", "plan", False)],
)
def test_plans_are_used_as_the_tag_says(use: str, capacity_type: str, *, avoids: bool) -> None:
    for document in (request(plan=use), {"instance_type": "x", "plan": use}):
        found = asked_job(document, HISTORY, source="job.json")
        assert (found.capacity_type, found.avoids_plans) == (capacity_type, avoids)


def test_the_tags_of_a_request_are_checked_as_at_a_submission() -> None:
    with pytest.raises(InvalidArgumentError, match="write 2-8"):
        asked_job(request(elastic="8-2"), HISTORY, source="job.json")
    with pytest.raises(InvalidArgumentError, match="InstanceCount"):
        asked_job(request(16, elastic="2-8"), HISTORY, source="job.json")
