"""The services behind the front door, as boto3 sees them, and what the journal says of each call."""

import io
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.wire import AwsError, Principal, Request, Response
from tests.integration.local.bare_twin import BareTwin, bare_twin

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareTwin]:
    with bare_twin(tmp_path_factory.mktemp("twin")) as twin:
        yield twin


@pytest.fixture
def twin(shared: BareTwin) -> BareTwin:
    shared.faults.clear()
    shared.journal_path.write_text("")
    return shared


def code_of(error: pytest.ExceptionInfo[ClientError]) -> tuple[str, int]:
    response = error.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def test_every_service_that_the_product_uses_answers_boto3(twin: BareTwin) -> None:
    queue = twin.client("sqs").create_queue(QueueName="q")["QueueUrl"]
    assert queue == f"{twin.door.endpoint_url}/{twin.account_id}/q"
    topic = twin.client("sns").create_topic(Name="t")["TopicArn"]
    assert twin.client("sns").publish(TopicArn=topic, Message="m")["MessageId"]
    alarms = twin.client("cloudwatch")
    alarms.put_metric_alarm(
        AlarmName="idle",
        Namespace="n",
        MetricName="m",
        Statistic="Average",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="LessThanThreshold",
    )
    assert [alarm["AlarmName"] for alarm in alarms.describe_alarms()["MetricAlarms"]] == ["idle"]
    twin.client("ssm").put_parameter(Name="/a/b", Value="v", Type="String")
    assert twin.client("ssm").get_parameter(Name="/a/b")["Parameter"]["Value"] == "v"
    assert twin.client("kms").create_key()["KeyMetadata"]["Arn"].startswith("arn:aws:kms:us-east-1:")
    entry = {"Source": "s", "DetailType": "d", "Detail": "{}"}
    assert twin.client("events").put_events(Entries=[entry])["FailedEntryCount"] == 0
    logs = twin.client("logs")
    logs.create_log_group(logGroupName="/g")
    logs.create_log_stream(logGroupName="/g", logStreamName="s")
    now = int(time.time() * 1000)
    logs.put_log_events(logGroupName="/g", logStreamName="s", logEvents=[{"timestamp": now, "message": "hi"}])
    assert [
        line["message"] for line in logs.get_log_events(logGroupName="/g", logStreamName="s")["events"]
    ] == ["hi"]
    names = [(call["service"], call["operation"], call["status"]) for call in twin.calls()]
    assert ("sqs", "CreateQueue", 200) in names
    assert ("cloudwatch", "PutMetricAlarm", 200) in names
    assert ("logs", "GetLogEvents", 200) in names


def test_log_events_are_found_by_the_prefix_of_their_stream(twin: BareTwin) -> None:
    logs = twin.client("logs")
    logs.create_log_group(logGroupName="/jobs")
    now = int(time.time() * 1000)
    for stream in ("one/algo-1", "one/algo-2", "two/algo-1"):
        logs.create_log_stream(logGroupName="/jobs", logStreamName=stream)
        events = [{"timestamp": now, "message": f"{stream} says {word}"} for word in ("hello", "bye")]
        logs.put_log_events(logGroupName="/jobs", logStreamName=stream, logEvents=events)

    def messages(**filters: Any) -> list[str]:
        found = logs.filter_log_events(logGroupName="/jobs", **filters)["events"]
        return [event["message"] for event in found]

    assert messages(logStreamNamePrefix="one/", filterPattern="bye") == [
        "one/algo-1 says bye",
        "one/algo-2 says bye",
    ]
    assert messages(logStreamNamePrefix="one/algo-2") == ["one/algo-2 says hello", "one/algo-2 says bye"]
    assert messages(logStreamNamePrefix="three/") == []
    assert len(messages()) == 6
    with pytest.raises(ClientError) as caught:
        messages(logStreamNamePrefix="one/", logStreamNames=["two/algo-1"])
    assert caught.value.response["Error"]["Code"] == "InvalidParameterException"
    with pytest.raises(ClientError) as caught:
        logs.filter_log_events(logGroupName="/none", logStreamNamePrefix="one/")
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"


def test_an_object_keeps_its_key_its_metadata_and_its_body(twin: BareTwin) -> None:
    storage = twin.client("s3")
    storage.create_bucket(Bucket="objects")
    key = "a b/ü%2F+~.txt"
    storage.put_object(Bucket="objects", Key=key, Body=b"hello", Metadata={"my_key": "v"})
    found = storage.get_object(Bucket="objects", Key=key)
    assert (found["Body"].read(), found["Metadata"]) == (b"hello", {"my_key": "v"})
    assert storage.head_object(Bucket="objects", Key=key)["ContentLength"] == 5
    assert [each["Key"] for each in storage.list_objects_v2(Bucket="objects", Prefix="a")["Contents"]] == [
        key
    ]
    calls = [(call["operation"], call["params"]) for call in twin.calls()]
    assert calls[1] == ("PutObject", {"Bucket": "objects", "Key": key})
    assert calls[3] == ("HeadObject", {"Bucket": "objects", "Key": key})
    assert calls[4][0] == "ListObjectsV2"


def test_a_large_upload_comes_in_parts(twin: BareTwin) -> None:
    storage = twin.client("s3")
    storage.create_bucket(Bucket="large")
    storage.upload_fileobj(io.BytesIO(b"x" * 12_000_000), "large", "big")
    assert storage.head_object(Bucket="large", Key="big")["ContentLength"] == 12_000_000
    operations = [call["operation"] for call in twin.calls()]
    assert operations.count("UploadPart") == 2
    assert {"CreateMultipartUpload", "CompleteMultipartUpload"} <= set(operations)


def test_a_presigned_url_belongs_to_who_signed_it(twin: BareTwin) -> None:
    storage = twin.client("s3")
    storage.create_bucket(Bucket="presigned")
    storage.put_object(Bucket="presigned", Key="k", Body=b"hello")
    url = storage.generate_presigned_url("get_object", Params={"Bucket": "presigned", "Key": "k"})
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.read() == b"hello"
    last = twin.calls()[-1]
    assert (last["principal"], last["operation"]) == (twin.admin.principal.arn, "GetObject")


def test_a_body_in_chunks_is_put_together(twin: BareTwin) -> None:
    storage = twin.client("s3")
    storage.create_bucket(Bucket="chunks")
    url = storage.generate_presigned_url("put_object", Params={"Bucket": "chunks", "Key": "k"})
    request = urllib.request.Request(url, data=iter([b"hel", b"lo"]), method="PUT")
    request.add_header("Content-Type", "application/octet-stream")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200
    assert storage.get_object(Bucket="chunks", Key="k")["Body"].read() == b"hello"


def test_the_journal_shortens_what_is_long(twin: BareTwin) -> None:
    queue = twin.client("sqs").create_queue(QueueName="long")["QueueUrl"]
    twin.client("sqs").send_message(QueueUrl=queue, MessageBody="x" * 5000)
    assert twin.calls()[-1]["params"]["MessageBody"].endswith("... (3976 more characters)")


def test_a_service_that_the_twin_lacks_says_so_in_one_attempt(twin: BareTwin) -> None:
    with pytest.raises(ClientError, match="the twin has no service 'batch'") as error:
        twin.client("batch").list_jobs()
    assert code_of(error) == ("NotImplemented", 501)
    with pytest.raises(ClientError, match="the twin has no service with the target 'secretsmanager'"):
        twin.client("secretsmanager").list_secrets()


def test_an_operation_that_moto_lacks_says_so(twin: BareTwin) -> None:
    with pytest.raises(ClientError, match="the twin has no kms:DeriveSharedSecret") as error:
        twin.client("kms").derive_shared_secret(KeyId="k", KeyAgreementAlgorithm="ECDH", PublicKey=b"x")
    assert code_of(error) == ("NotImplemented", 501)


@pytest.mark.parametrize(
    ("service", "operation", "params", "code", "status"),
    [
        pytest.param(
            "dynamodb",
            "list_tables",
            {},
            "InternalServerError",
            500,
            id="json, a status from the service's model",
        ),
        pytest.param(
            "sqs", "list_queues", {}, "AccessDenied", 403, id="json that repeats the code in a header"
        ),
        pytest.param("sns", "list_topics", {}, "InternalError", 500, id="query"),
        pytest.param("s3", "list_buckets", {}, "SlowDown", 503, id="s3"),
        pytest.param("cloudwatch", "describe_alarms", {}, "ThrottlingException", 400, id="cloudwatch"),
    ],
)
def test_an_error_on_demand_is_an_error_of_that_service(
    twin: BareTwin, service: str, operation: str, params: dict[str, Any], code: str, status: int
) -> None:
    client = twin.client(service)
    name = client.meta.method_to_api_mapping[operation]
    twin.faults.set(name, code)
    with pytest.raises(ClientError) as error:
        getattr(client, operation)(**params)
    assert code_of(error) == (code, status)
    getattr(client, operation)(**params)
    assert [(call["error_code"], call["status"]) for call in twin.calls()] == [(code, status), (None, 200)]


def test_an_error_of_a_service_is_in_the_journal(twin: BareTwin) -> None:
    with pytest.raises(ClientError) as error:
        twin.client("sqs").get_queue_url(QueueName="nobody")
    assert code_of(error) == ("AWS.SimpleQueueService.NonExistentQueue", 400)
    last = twin.calls()[-1]
    assert (last["status"], last["error_code"]) == (400, "QueueDoesNotExist")


def test_a_mounted_service_gets_operation_parameters_and_caller(twin: BareTwin) -> None:
    def answer(operation: str, params: dict[str, Any], principal: Principal) -> dict[str, Any]:
        if operation == "StopTrainingJob":
            raise AwsError("ResourceNotFound", "no such job")
        assert (operation, params) == ("DescribeTrainingJob", {"TrainingJobName": "job1"})
        return {"TrainingJobName": principal.arn, "CreationTime": NOON}

    twin.door.mount_service("sagemaker", answer)
    training = twin.client("sagemaker")
    found = training.describe_training_job(TrainingJobName="job1")
    assert (found["TrainingJobName"], found["CreationTime"]) == (twin.admin.principal.arn, NOON)
    with pytest.raises(ClientError) as error:
        training.stop_training_job(TrainingJobName="job1")
    assert code_of(error) == ("ResourceNotFound", 400)


def test_a_mounted_service_that_breaks_answers_500_and_the_door_goes_on(twin: BareTwin) -> None:
    def broken(*_: object) -> dict[str, Any]:
        raise KeyError

    twin.door.mount_service("sagemaker", broken)
    with pytest.raises(ClientError) as error:
        twin.client("sagemaker").list_training_jobs()
    assert code_of(error) == ("InternalFailure", 500)
    assert twin.client("sqs").list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_listeners_hear_of_calls_that_succeed_only(twin: BareTwin) -> None:
    heard = list[dict[str, Any]]()

    def broken(_params: dict[str, Any]) -> None:
        raise KeyError

    twin.door.add_listener("sqs", "SendMessage", broken)
    twin.door.add_listener("sqs", "SendMessage", heard.append)
    queue = twin.client("sqs").create_queue(QueueName="heard")["QueueUrl"]
    twin.client("sqs").send_message(QueueUrl=queue, MessageBody="m")
    with pytest.raises(ClientError):
        twin.client("sqs").send_message(QueueUrl=queue + "-not", MessageBody="m")
    assert heard == [{"QueueUrl": queue, "MessageBody": "m"}]


def test_a_mount_sees_its_path_without_the_token_and_is_not_in_the_journal(twin: BareTwin) -> None:
    url = twin.door.mount("/_control", lambda request: Response(status=200, body=request.raw_path.encode()))
    for path in ("", "/", "/x%20y"):
        with urllib.request.urlopen(f"{url}{path}?z=1", timeout=10) as answer:
            assert answer.read() == f"/_control{path}".encode()
    assert twin.calls() == []


def test_a_mount_that_breaks_answers_500(twin: BareTwin) -> None:
    def broken(_request: Request) -> Response:
        raise KeyError

    url = twin.door.mount("/_broken", broken)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(url, timeout=10)
    assert error.value.code == 500
    error.value.close()


def test_a_request_without_a_signature_is_refused(twin: BareTwin) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(f"{twin.door.endpoint_url}/bucket/key", timeout=10)
    assert (error.value.code, twin.calls()[-1]["principal"]) == (403, None)
    error.value.close()


def test_the_engines_own_clients_leave_no_trace(twin: BareTwin) -> None:
    twin.engine.client("sqs").create_queue(QueueName="own")
    assert twin.calls() == []
    assert twin.client("sqs").get_queue_url(QueueName="own")["QueueUrl"].endswith("/own")
    with pytest.raises(ClientError) as error:
        twin.engine.client("sqs").get_queue_url(QueueName="nobody")
    assert code_of(error)[0] == "AWS.SimpleQueueService.NonExistentQueue"


def test_twenty_clients_at_once_are_all_served(twin: BareTwin) -> None:
    queue = twin.client("sqs").create_queue(QueueName="many")["QueueUrl"]
    clients = [twin.client("sqs") for _ in range(20)]
    threads = [
        threading.Thread(
            target=lambda client=client: [
                client.send_message(QueueUrl=queue, MessageBody="m") for _ in range(5)
            ]
        )
        for client in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    count = twin.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    assert count["ApproximateNumberOfMessages"] == "100"


def test_a_long_poll_ends_when_a_message_comes_and_holds_up_nobody(twin: BareTwin) -> None:
    queue = twin.client("sqs").create_queue(QueueName="poll")["QueueUrl"]
    received = list[dict[str, Any]]()
    poller = threading.Thread(
        target=lambda: received.append(twin.client("sqs").receive_message(QueueUrl=queue, WaitTimeSeconds=20))
    )
    poller.start()
    started = time.monotonic()
    twin.client("sqs").send_message(QueueUrl=queue, MessageBody="m")
    poller.join(10)
    assert time.monotonic() - started < 5
    assert [message["Body"] for message in received[0]["Messages"]] == ["m"]


def test_a_delayed_message_follows_a_manual_clock(tmp_path: Path) -> None:
    with bare_twin(tmp_path, manual_from=NOON) as twin:
        queues = twin.client("sqs")
        queue = queues.create_queue(QueueName="q")["QueueUrl"]
        queues.send_message(QueueUrl=queue, MessageBody="m", DelaySeconds=60)
        assert "Messages" not in queues.receive_message(QueueUrl=queue, WaitTimeSeconds=1)
        twin.clock.advance(timedelta(seconds=61))
        assert queues.receive_message(QueueUrl=queue)["Messages"][0]["Body"] == "m"
        twin.client("s3").create_bucket(Bucket="old")
        twin.client("s3").put_object(Bucket="old", Key="k")
        modified = twin.client("s3").head_object(Bucket="old", Key="k")["LastModified"]
        assert modified == NOON + timedelta(seconds=61)
