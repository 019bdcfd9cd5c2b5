"""The tables by which a request is told apart agree with botocore's service models."""

from datetime import UTC, datetime

import botocore.session
import pytest

from local.account.account_answers import SERVICES as ACCOUNT_SERVICES
from local.engine.calls import SIGNING_NAMES, TARGETS, AwsCall, protocol_of, read_call
from local.engine.errors import QUERY_COMPATIBLE
from local.engine.moto_engine import SERVICES
from local.wire import AwsError, Request

SESSION = botocore.session.get_session()


@pytest.mark.parametrize(("prefix", "service"), TARGETS.items())
def test_a_target_is_the_services_own(prefix: str, service: str) -> None:
    assert SESSION.get_service_model(service).metadata["targetPrefix"] == prefix


@pytest.mark.parametrize(("name", "service"), SIGNING_NAMES.items())
def test_a_signing_name_is_the_services_own(name: str, service: str) -> None:
    assert SESSION.get_service_model(service).signing_name == name


def test_the_services_that_repeat_their_code_in_a_header_are_those_of_the_models() -> None:
    known = {*TARGETS.values(), *SIGNING_NAMES.values()}
    assert {
        name for name in known if "awsQueryCompatible" in SESSION.get_service_model(name).metadata
    } == QUERY_COMPATIBLE


def test_every_service_is_answered_by_moto_or_by_the_twin_itself() -> None:
    own = {"service-quotas", "sts", *ACCOUNT_SERVICES}
    assert {*TARGETS.values(), *SIGNING_NAMES.values()} - own == set(SERVICES)


def request(body: bytes, **headers: str) -> Request:
    spelled = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method="POST", raw_path="/", query="", headers=spelled, body=body)


def test_a_query_call_is_read_in_boto3s_names() -> None:
    attribute = "MessageAttributes.entry.1"
    form = f"Action=Publish&TopicArn=t&{attribute}.Name=n&{attribute}.Value.DataType=String".encode()
    call = read_call(
        request(form, content_type="application/x-www-form-urlencoded"), signing_name="sns", region="r"
    )
    assert (call.service, call.operation) == ("sns", "Publish")
    assert call.params == {"TopicArn": "t", "MessageAttributes": {"n": {"DataType": "String"}}}


def queried(form: str) -> AwsCall:
    sent = request(form.encode(), content_type="application/x-www-form-urlencoded")
    return read_call(sent, signing_name="monitoring", region="r")


@pytest.mark.parametrize(
    "text", ["2026-01-01T12:00:00Z", "2026-01-01T12:00:00", "2026-01-01T14:00:00%2B02:00", "1767268800"]
)
def test_a_time_of_a_query_call_is_utc_whether_it_says_so_or_not(text: str) -> None:
    call = queried(f"Action=GetMetricStatistics&StartTime={text}")
    assert call.params == {"StartTime": datetime(2026, 1, 1, 12, tzinfo=UTC)}


@pytest.mark.parametrize("wrong", ["StartTime=noon", "Period=often"])
def test_a_query_call_with_a_value_of_another_kind_is_refused(wrong: str) -> None:
    with pytest.raises(AwsError) as refused:
        queried(f"Action=GetMetricStatistics&{wrong}")
    assert refused.value.code == "MalformedInput"


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", "SerializationException"), (b"[]", "SerializationException")],
)
def test_a_body_that_is_no_object_is_refused(body: bytes, code: str) -> None:
    with pytest.raises(AwsError) as error:
        read_call(request(body, x_amz_target="AmazonSQS.SendMessage"), signing_name="sqs", region="r")
    assert error.value.code == code


def test_an_error_is_written_as_the_caller_reads_it() -> None:
    assert protocol_of(request(b"", x_amz_target="AmazonSQS.SendMessage"), "sqs") == "json"
    assert (
        protocol_of(request(b"", content_type="application/x-www-form-urlencoded; charset=utf-8"), "sns")
        == "query"
    )
    assert protocol_of(request(b""), "s3") == "rest-xml"
    assert protocol_of(request(b"", content_type="application/json"), "lambda") == "json"
