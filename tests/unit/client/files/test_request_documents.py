"""Request files as people have them: answers of SageMaker, wrapped requests, YAML."""

import json
from typing import Any

import boto3
import pytest
import yaml
from trainmaster.core.request.request_shapes import ROOT, SHAPES
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.request_documents import ANSWER_FIELDS, read_request, request_of

REQUEST: dict[str, Any] = {
    "TrainingJobName": "nightly",
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "AlgorithmSpecification": {"TrainingImage": "image:1", "TrainingInputMode": "File"},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
    "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
}
ANSWER = {
    **REQUEST,
    "TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/nightly",
    "TrainingJobStatus": "Completed",
    "CreationTime": "2026-11-26T01:00:00+00:00",
    "SecondaryStatusTransitions": [{"Status": "Training", "StartTime": "2026-11-26T01:03:00+00:00"}],
    "ResponseMetadata": {"HTTPStatusCode": 200},
}


def read(document: object, *, source: str = "job.json") -> dict[str, Any]:
    return read_request(json.dumps(document).encode(), source=source).request


def refusal(text: str | bytes, *, source: str = "job.json") -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        read_request(text if isinstance(text, bytes) else text.encode(), source=source)
    return str(caught.value)


# ---- what DescribeTrainingJob answers


def test_C11_an_answer_of_describe_training_job_is_taken_as_the_request_within_it() -> None:
    found = read_request(json.dumps(ANSWER).encode(), source="job.json")
    assert found.request == REQUEST
    (note,) = found.notes
    assert note.startswith("job.json is what DescribeTrainingJob answers. It is taken as a request without ")
    assert "TrainingJobArn, TrainingJobStatus, CreationTime, SecondaryStatusTransitions" in note
    assert "no tags" in note


def test_C11_an_answer_as_yaml_may_have_dates_where_they_are_dropped() -> None:
    text = yaml.safe_dump(ANSWER).replace("'2026-11-26T01:00:00+00:00'", "2026-11-26T01:00:00+00:00")
    assert read_request(text.encode(), source="job.yaml").request == REQUEST


def test_C11_a_request_with_a_field_of_an_answer_alone_is_left_to_the_server() -> None:
    with_a_slip = {**REQUEST, "FailureReason": "?"}
    assert read(with_a_slip) == with_a_slip, "nothing else says that SageMaker answered this"


def test_C11_a_misspelled_field_of_an_answer_is_not_dropped() -> None:
    assert "StopingCondition" in read({**ANSWER, "StopingCondition": {}})


def test_C11_every_field_that_only_an_answer_has_is_known() -> None:
    client = boto3.Session().client("sagemaker", region_name="us-east-1")
    answered: Any = client.meta.service_model.operation_model("DescribeTrainingJob").output_shape
    assert set(answered.members) - set(SHAPES[ROOT]["members"]) == ANSWER_FIELDS - {"ResponseMetadata"}


# ---- wrapped requests


@pytest.mark.parametrize(
    ("document", "place"),
    [
        pytest.param({"Training": REQUEST}, "Training", id="Airflow"),
        pytest.param(
            {"Type": "Task", "Resource": "arn:aws:states:::sagemaker:x", "Parameters": REQUEST, "End": True},
            "Parameters",
            id="a state",
        ),
        pytest.param(
            {"StartAt": "Train", "States": {"Train": {"Type": "Task", "Arguments": REQUEST}}},
            "States.Train.Arguments",
            id="a state machine",
        ),
        pytest.param(
            {"method": "create_training_job", "kwargs": REQUEST}, "kwargs", id="a dumped call of boto3"
        ),
        pytest.param({"eventName": "x", "detail": ANSWER}, "detail", id="an event"),
        pytest.param({"Results": [{"TrainingJob": ANSWER}]}, "Results[0].TrainingJob", id="a search"),
        pytest.param([REQUEST], "[0]", id="a list of one"),
        pytest.param({"name": "nightly", "request": REQUEST}, "request", id="our own answer"),
        pytest.param({"TrainingJobName": "x", "Training": REQUEST}, "Training", id="a name beside it"),
    ],
)
def test_C12_a_wrapped_request_is_named_by_its_place_and_nothing_else_is_said(
    document: object, place: str
) -> None:
    said = refusal(json.dumps(document))
    assert said == f"job.json: the request is in {place}: give that part. Nothing was sent."


def test_C12_several_requests_are_all_named() -> None:
    said = refusal(json.dumps({"a": REQUEST, "b": [REQUEST, REQUEST]}))
    assert said == "job.json: 3 requests are in a, b[0], b[1]: give one of these parts. Nothing was sent."


def test_C12_fields_that_step_functions_fills_in_need_values() -> None:
    rest = {key: value for key, value in REQUEST.items() if key != "TrainingJobName"}
    part = {"TrainingJobName.$": "$.name", **rest}
    assert refusal(json.dumps({"Parameters": part})) == (
        "job.json: the request is in Parameters: give that part. "
        "Write values in place of TrainingJobName.$. Nothing was sent."
    )
    assert refusal(json.dumps(part)).startswith("job.json: Step Functions fills in TrainingJobName.$ when")


@pytest.mark.parametrize("spelled", [lambda key: key[0].lower() + key[1:], str.upper])
def test_C12_fields_in_another_case_are_one_mistake(spelled: Any) -> None:
    said = refusal(json.dumps({spelled(key): value for key, value in REQUEST.items()}))
    assert said.startswith("job.json: its fields are not spelled as boto3 spells them.")
    assert f"Write TrainingJobName for {spelled('TrainingJobName')}, " in said


def test_C12_a_request_with_much_missing_is_left_to_the_server() -> None:
    assert read({"TrainingJobName": "x"}) == {"TrainingJobName": "x"}
    assert read({"InputDataConfig": []}) == {"InputDataConfig": []}


def test_C12_a_mapping_in_python_is_looked_at_in_the_same_way() -> None:
    assert request_of(ANSWER, source="the request").request == REQUEST
    with pytest.raises(InvalidArgumentError, match="the request is in Training"):
        request_of({"Training": REQUEST}, source="the request")


# ---- YAML


@pytest.mark.parametrize("source", ["job.yaml", "job.yml", "<stdin>"])
def test_C13_yaml_is_taken_with_its_comments(source: str) -> None:
    text = f"# nightly\n{yaml.safe_dump(REQUEST)}"
    assert read_request(text.encode(), source=source).request == REQUEST


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("RoleArn: a\n\tTrainingJobName: b\n", "line 2 begins with a tab: use spaces", id="tab"),
        pytest.param("Tags: []\nTags: []\n", "line 2: the key 'Tags' is written twice", id="twice"),
        pytest.param("a: 1\n---\nb: 2\n", "it holds 2 documents (---); write one", id="two documents"),
        pytest.param("Environment:\n  SINCE: 2026-11-01\n", "Environment.SINCE: YAML reads it as", id="date"),
        pytest.param("Environment: {1: x}\n", "Environment.1: its key is not text", id="a number as key"),
        pytest.param("HyperParameters: {lr: .nan}\n", "HyperParameters.lr: it is no value", id="nan"),
        pytest.param("Environment: !!python/name:os.system x\n", "could not determine", id="a tag of Python"),
        pytest.param("nightly\n", "holds no request", id="a word"),
        pytest.param("", "holds no request", id="nothing"),
        pytest.param("a: &a [*a]\n", "stands within it", id="holds itself"),
    ],
)
def test_C13_a_mistake_in_yaml_is_one_sentence_with_its_place(text: str, said: str) -> None:
    message = refusal(text, source="job.yaml")
    assert said in message
    assert message.endswith("Nothing was sent.")


def test_C13_json_with_a_mistake_is_still_refused_as_json() -> None:
    assert "line 1 column" in refusal('{"TrainingJobName": "x",}')
    assert "'Tags' is written twice" in refusal('{"Tags": [], "Tags": []}')
    assert "can't decode" in refusal(b"\xff")
