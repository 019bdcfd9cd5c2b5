from datetime import timedelta
from typing import Any

import pytest
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.io.asked_job import asked_job

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
    ],
)
def test_what_is_wrong_is_said_with_its_field(document: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        asked_job(document, HISTORY, source="job.json")
    assert said in str(raised.value)
