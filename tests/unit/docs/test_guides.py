"""The guides name what there is: parameters, questions of SAM, words of AWS Batch, fields of SageMaker."""

import ast
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from trainmaster_client.preflight import commands

from tests.markdown import codes, table, text_of
from tests.template.stack import source

DEPLOY = text_of("docs/guides/deploy.md")
BATCH = text_of("docs/guides/migrate-from-aws-batch.md")
FIT = text_of("docs/guides/migrate-from-fit.md")
_MODELS: Any = botocore.session.get_session()


def source_of(package: str, path: str) -> str:
    """Read, not imported: that takes seconds."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0], path).read_text()


def test_every_parameter_is_explained_in_the_order_in_which_it_is_asked_for() -> None:
    rows = table(DEPLOY, "parameter", "how to find the value", "if it is wrong")
    assert [codes(row[0])[0] for row in rows] == list(source()["Parameters"])


def test_the_questions_are_those_that_sam_asks() -> None:
    asked = source_of("samcli", "commands/deploy/guided_context.py")
    for question, _ in table(DEPLOY, "it asks", "answer"):
        assert f"{codes(question)[0].removesuffix(' ...')}" in asked


def test_the_words_of_aws_batch_are_in_its_service_model() -> None:
    model = json.dumps(_MODELS.get_service_model("batch")._service_description)
    words = {code for row in table(BATCH, "AWS Batch", "trainmaster", "note") for code in codes(row[0])}
    assert words
    assert {word for word in words if word[0].lower() + word[1:] not in model and word not in model} == set()


def test_the_arguments_of_submit_are_those_of_the_sdk() -> None:
    (listed,) = re.findall(r"`TrainingQueue\.submit\(estimator, ([^)]*)\)`", BATCH)
    assert set(arguments_of_submit()) - {"self", "training_job", "experiment_config"} == set(
        listed.split(", ")
    )


def arguments_of_submit() -> list[str]:
    text = source_of("sagemaker", "aws_batch/training_queue.py")
    (submit,) = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == "submit"
    ]
    return [argument.arg for argument in submit.args.args]


def test_the_fields_are_those_of_a_description() -> None:
    shape = _MODELS.get_service_model("sagemaker").shape_for("DescribeTrainingJobResponse")
    rows = table(FIT, "field of DescribeTrainingJob", "waiting for its first start", "later")
    named = {code for row in rows[:-1] for code in codes(row[0])}
    assert named
    assert named - set(shape.members) == set()


@pytest.mark.parametrize(
    "printed",
    [
        pytest.param(commands.make_api_endpoint("vpc-0a1b2c3d", region="us-east-1"), id="the API's endpoint"),
        pytest.param(
            commands.make_endpoint("sts", "vpc-0a1b2c3d", region="us-east-1"), id="an interface endpoint"
        ),
        pytest.param(
            commands.make_endpoint("s3", "vpc-0a1b2c3d", region="us-east-1"), id="the gateway endpoint"
        ),
        pytest.param(commands.list_api_endpoints("us-east-1"), id="endpoints that there are"),
        pytest.param(commands.switch_on_dns("vpc-0a1b2c3d"), id="DNS"),
        pytest.param(commands.move_studio_into_vpc("d-0a1b2c3d"), id="Studio"),
        pytest.param(commands.raise_concurrency(1000), id="concurrency"),
        pytest.param(commands.delete_log_group("/aws/lambda/trainmaster-api"), id="log groups"),
        pytest.param(commands.delete_stack("trainmaster"), id="a failed stack"),
    ],
)
def test_the_commands_of_preflight_are_those_of_the_guide(printed: str) -> None:
    """Both would be pasted; only one of the two is run by a program that is tested."""
    shown = " ".join(DEPLOY.replace("\\\n", " ").split())
    assert " ".join(printed.split()) in shown
