"""Models and endpoints behind the front door: kept as on SageMaker, without anything that serves them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.local.bare_twin import BareTwin, bare_twin

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROLE = "arn:aws:iam::123456789012:role/training"
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/train:1"
DATA = "s3://bucket/out/job-2/output/model.tar.gz"
ARN = "arn:aws:sagemaker:us-east-1:123456789012"


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareTwin]:
    with bare_twin(tmp_path_factory.mktemp("hosting"), manual_from=NOON) as made:
        made.door.mount_service(
            "sagemaker", _training, owns=lambda operation, _: operation == "StopTrainingJob"
        )
        made.client("s3").create_bucket(Bucket="bucket")
        made.client("s3").put_object(Bucket="bucket", Key="out/job-2/output/model.tar.gz", Body=b"weights")
        yield made


def _training(operation: str, *_: object) -> dict[str, Any]:
    return {"AnsweredBy": operation}


def model(name: str) -> dict[str, Any]:
    container = {"Image": IMAGE, "ModelDataUrl": DATA}
    return {"ModelName": name, "ExecutionRoleArn": ROLE, "PrimaryContainer": container}


def variant(model_name: str, instance_type: str = "ml.g6.12xlarge") -> dict[str, Any]:
    return {
        "VariantName": "all",
        "ModelName": model_name,
        "InstanceType": instance_type,
        "InitialInstanceCount": 2,
    }


def refused(call: Any, **params: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**params)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def test_a_model_and_its_endpoint_are_kept_seen_and_deleted_by_the_twins_clock(twin: BareTwin) -> None:
    client = twin.client("sagemaker")
    client.create_model(**model("whole"))
    client.create_endpoint_config(EndpointConfigName="config", ProductionVariants=[variant("whole")])
    client.create_endpoint(EndpointName="end", EndpointConfigName="config", Tags=[{"Key": "a", "Value": "b"}])

    seen = client.describe_model(ModelName="whole")
    assert (seen["PrimaryContainer"]["ModelDataUrl"], seen["CreationTime"]) == (DATA, NOON)
    assert "VpcConfig" not in seen
    assert "Containers" not in seen
    endpoint = client.describe_endpoint(EndpointName="end")
    assert (endpoint["EndpointStatus"], endpoint["EndpointConfigName"]) == ("InService", "config")
    assert client.list_tags(ResourceArn=endpoint["EndpointArn"])["Tags"] == [{"Key": "a", "Value": "b"}]
    assert [one["EndpointName"] for one in client.list_endpoints()["Endpoints"]] == ["end"]

    client.delete_endpoint(EndpointName="end")
    client.delete_endpoint_config(EndpointConfigName="config")
    client.delete_model(ModelName="whole")
    assert refused(client.describe_model, ModelName="whole") == (
        "ValidationException",
        f"Could not find model '{ARN}:model/whole'.",
    )


def test_a_name_that_is_taken_and_an_instance_type_that_nobody_has_are_refused(twin: BareTwin) -> None:
    client = twin.client("sagemaker")
    client.create_model(**model("taken"))
    client.create_endpoint_config(EndpointConfigName="taken", ProductionVariants=[variant("taken")])
    client.create_endpoint(EndpointName="taken", EndpointConfigName="taken")
    assert refused(client.create_model, **model("taken")) == (
        "ValidationException",
        f'Cannot create already existing model "{ARN}:model/taken".',
    )
    again = {"EndpointConfigName": "taken", "ProductionVariants": [variant("taken")]}
    assert refused(client.create_endpoint_config, **again) == (
        "ValidationException",
        f'Cannot create already existing endpoint configuration "{ARN}:endpoint-config/taken".',
    )
    assert refused(client.create_endpoint, EndpointName="taken", EndpointConfigName="taken") == (
        "ValidationException",
        f'Cannot create already existing endpoint "{ARN}:endpoint/taken".',
    )
    unknown = {"EndpointConfigName": "other", "ProductionVariants": [variant("taken", "ml.none.large")]}
    code, message = refused(client.create_endpoint_config, **unknown)
    assert code == "ValidationException"
    assert "'ml.none.large' at 'productionVariants.1.member.instanceType'" in message


@pytest.mark.parametrize("uri", ["s3://bucket/out/job-1/output/model.tar.gz", "s3://none/model.tar.gz"])
def test_a_model_without_data_is_refused_however_it_names_them(twin: BareTwin, uri: str) -> None:
    client = twin.client("sagemaker")
    source = {"S3DataSource": {"S3Uri": uri, "S3DataType": "S3Object", "CompressionType": "Gzip"}}
    for container in ({"ModelDataUrl": uri}, {"ModelDataSource": source}):
        params = model("empty") | {"PrimaryContainer": {"Image": IMAGE, **container}}
        assert refused(client.create_model, **params) == (
            "ValidationException",
            f"Could not find model data at {uri}.",
        )
        several = {"ModelName": "empty", "ExecutionRoleArn": ROLE, "Containers": [params["PrimaryContainer"]]}
        assert refused(client.create_model, **several)[0] == "ValidationException"


def test_a_model_can_be_an_image_alone_or_many_objects_under_a_prefix(twin: BareTwin) -> None:
    client = twin.client("sagemaker")
    source = {"S3Uri": "s3://bucket/out/job-2/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    for name, more in (("image", {}), ("prefix", {"ModelDataSource": {"S3DataSource": source}})):
        container = {"Image": IMAGE, **more}
        client.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)
        assert client.describe_model(ModelName=name)["PrimaryContainer"] == container


@pytest.mark.parametrize(
    ("method", "params"),
    [
        pytest.param("describe_training_job", {"TrainingJobName": "a"}, id="a training job"),
        pytest.param("list_tags", {"ResourceArn": f"{ARN}:training-job/a"}, id="the tags of one"),
        pytest.param("list_processing_jobs", {}, id="jobs that moto would say it ran"),
        pytest.param("search", {"Resource": "TrainingJob"}, id="a search of jobs that moto does not have"),
        pytest.param("create_hub", {"HubName": "h", "HubDescription": "d"}, id="what moto has not"),
    ],
)
def test_moto_is_never_asked_about(twin: BareTwin, method: str, params: dict[str, Any]) -> None:
    code, message = refused(getattr(twin.client("sagemaker"), method), **params)
    assert code == "UnknownOperationException"
    assert message.startswith("The twin does not emulate ")


def test_who_is_limited_needs_the_right_to_make_a_model_and_to_pass_its_role(twin: BareTwin) -> None:
    on_model = {"Effect": "Allow", "Action": "sagemaker:CreateModel", "Resource": f"{ARN}:model/mine-*"}
    passing = {"Effect": "Allow", "Action": "iam:PassRole", "Resource": ROLE}
    without_role = twin.client("sagemaker", twin.function_role(on_model))
    code, message = refused(without_role.create_model, **model("mine-1"))
    assert (code, "iam:PassRole" in message) == ("AccessDeniedException", True)
    client = twin.client("sagemaker", twin.function_role(on_model, passing))
    assert client.create_model(**model("mine-1"))["ModelArn"] == f"{ARN}:model/mine-1"
    code, message = refused(client.create_model, **model("others"))
    assert (code, f"{ARN}:model/others" in message) == ("AccessDeniedException", True)
