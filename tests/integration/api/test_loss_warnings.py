"""A job that the policy's rule on the loss cannot judge: said at the submission, and by its dry run."""

from typing import Any

import pytest

from tests.bodies import body
from tests.integration.api.conftest import ADMIN, DOCUMENT, Api

FIELD = "AlgorithmSpecification.MetricDefinitions"
READABLE = {"Name": "train:loss", "Regex": "loss=([0-9.]+)"}
OTHER = {"Name": "train:acc", "Regex": "acc=([0-9.]+)"}


def put(api: Api, loss: Any) -> None:
    assert api.call("PUT", "/policy", {**DOCUMENT, "loss": loss}, user=ADMIN).status == 200


def asked(definitions: list[Any] | None) -> dict[str, Any]:
    request = dict[str, Any](body())
    if definitions is not None:
        algorithm = {**request["AlgorithmSpecification"], "MetricDefinitions": definitions}
        request["AlgorithmSpecification"] = algorithm
    return request


def warnings(api: Api, request: dict[str, Any], *, is_dry_run: bool = False) -> list[dict[str, Any]]:
    query = {"dry_run": "true"} if is_dry_run else None
    answer = api.call("POST", "/add-job", request, query=query)
    assert answer.status == (200 if is_dry_run else 201), answer.json
    found: list[dict[str, Any]] = answer.json["warnings"]
    return found


@pytest.mark.parametrize(
    ("definitions", "field", "says"),
    [
        pytest.param(None, FIELD, "lacks train:loss", id="no definitions"),
        pytest.param([OTHER], FIELD, "the request has train:acc", id="another metric"),
        pytest.param(
            [OTHER, {"Name": "train:loss", "Regex": "(?i)loss=(.*)"}],
            f"{FIELD}[1].Regex",
            "cannot be read",
            id="an expression that is not judged",
        ),
    ],
)
def test_the_dry_run_and_the_submission_warn_of_a_loss_that_is_not_judged(
    api: Api, definitions: list[Any] | None, field: str, says: str
) -> None:
    put(api, {"non_finite": "stop"})
    foreseen = warnings(api, asked(definitions), is_dry_run=True)
    assert [warning["field"] for warning in foreseen] == [field]
    assert says in foreseen[0]["message"]
    assert "loss=([0-9.]+)" in foreseen[0]["hint"], "a right example"
    assert warnings(api, asked(definitions)) == foreseen


def test_a_job_that_defines_the_metric_gets_no_warning(api: Api) -> None:
    put(api, {"non_finite": "stop"})
    assert warnings(api, asked([READABLE])) == []


def test_without_the_rule_nothing_is_said_of_metrics(api: Api) -> None:
    assert warnings(api, asked(None)) == []
