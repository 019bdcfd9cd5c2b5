"""Functions on the twin: their twin_address, their failures, and everything that triggers them."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.local.running_twin import FIXTURE, Answer, RunningTwin, eventually, running_twin


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("twin")
    with running_twin(folder, template=FIXTURE, manual=True, speed=1.0) as twin:
        yield twin


def do(twin: RunningTwin, action: str, argument: Any = None) -> Answer:
    return twin.api("POST", "/do", {"do": action, "with": argument})


def events(twin: RunningTwin, mark: str) -> list[dict[str, Any]]:
    """What the recorder was invoked with, of events that hold the mark."""
    lines = twin.log_of("recorder").splitlines()
    texts = [line.removeprefix("EVENT ") for line in lines if line.startswith("EVENT ") and mark in line]
    return [json.loads(text) for text in texts]


def recorded(twin: RunningTwin, mark: str, times: int) -> bool:
    """Answer whether the recorder got so many events with the mark; its last lines may be on their way."""
    return eventually(lambda: len(events(twin, mark)) >= times) and len(events(twin, mark)) == times


def bodies(queue: str, twin: RunningTwin) -> list[Any]:
    sqs = twin.client("sqs")
    url = sqs.get_queue_url(QueueName=f"trainmaster-{queue}")["QueueUrl"]
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    return [message["Body"] for message in messages]


def test_a_function_sees_its_own_code_its_layer_and_its_environment_alone(twin: RunningTwin) -> None:
    seen = do(twin, "twin_address").json["result"]
    env = seen["env"]
    assert seen["farewell"] == "bye"
    assert seen["cwd"].endswith("functions/probe")
    assert env["GREETING"] == "hello"
    assert env["TABLE"] == "trainmaster-Table"
    assert env["AWS_ENDPOINT_URL"] == twin.ready.endpoint_url
    assert env["AWS_LAMBDA_FUNCTION_NAME"] == "trainmaster-ProbeFunction"
    assert env["AWS_EXECUTION_ENV"] == "AWS_Lambda_python3.13"
    assert "HOME" not in env


def test_its_calls_are_made_under_a_session_of_its_own_role(twin: RunningTwin) -> None:
    answer = do(twin, "call", {"service": "sts", "method": "get_caller_identity"})
    arn = answer.json["result"]["Arn"]
    account = twin.ready.account_id
    assert arn == f"arn:aws:sts::{account}:assumed-role/trainmaster-ProbeFunctionRole/probe"


def test_it_may_do_what_its_policies_say_and_nothing_else(twin: RunningTwin) -> None:
    key = {"TableName": "trainmaster-Table", "Key": {"pk": {"S": "x"}}}
    allowed = do(twin, "call", {"service": "dynamodb", "method": "get_item", "params": key})
    assert allowed.status == 200
    refused = do(twin, "call", {"service": "dynamodb", "method": "delete_item", "params": key})
    assert refused.status == 502
    assert eventually(lambda: "AccessDeniedException" in twin.log_of("probe"))


def test_its_process_keeps_the_time_of_the_twin(twin: RunningTwin) -> None:
    now = twin.advance(3 * 3600)
    seen = do(twin, "clocks").json["result"]
    instant = datetime.fromisoformat(now)
    assert instant > datetime.now(UTC) + timedelta(hours=2)
    assert abs(datetime.fromisoformat(seen["datetime"]) - instant) < timedelta(seconds=1)
    assert abs(datetime.fromisoformat(seen["naive"]).replace(tzinfo=UTC) - instant) < timedelta(seconds=1)
    assert seen["date"] == f"{instant:%Y-%m-%d}"
    assert abs(seen["time"] - instant.timestamp()) < 1
    assert abs(seen["time_ns"] / 1e9 - instant.timestamp()) < 1
    assert seen["gmtime"] == f"{instant:%Y-%m-%dT%H:%M:%S}"
    assert (seen["is_datetime"], seen["is_date"], seen["is_own"]) == (True, True, False)


def test_nobody_waits_for_a_clock_that_stands_still(twin: RunningTwin) -> None:
    assert do(twin, "sleep", 60).status == 200, "within its two seconds"


def test_time_left_is_counted_on_the_same_clock(twin: RunningTwin) -> None:
    assert 0 < do(twin, "clocks").json["remaining_ms"] <= 2000


def test_a_function_that_raises_gives_502_and_a_trace_in_its_log(twin: RunningTwin) -> None:
    answer = do(twin, "fail")
    assert (answer.status, answer.json) == (502, {"message": "Internal server error"})
    assert eventually(lambda: "ValueError: told to" in twin.log_of("probe"))


@pytest.mark.parametrize("strange", [None, "text", {"statusCode": "ok"}, {"statusCode": 200, "body": 5}])
def test_an_answer_of_the_wrong_form_gives_502(twin: RunningTwin, strange: Any) -> None:
    assert do(twin, "answer", strange).status == 502


def test_a_function_that_cannot_be_imported_gives_502_each_time(twin: RunningTwin) -> None:
    assert [twin.api("GET", "/broken").status for _ in range(2)] == [502, 502]
    assert eventually(lambda: "Unable to import module 'app'" in twin.log_of("broken"))


def test_a_process_that_dies_is_replaced(twin: RunningTwin) -> None:
    assert do(twin, "leave").status == 502
    assert do(twin, "twin_address").status == 200


def test_a_call_that_takes_too_long_is_ended_with_its_process(twin: RunningTwin) -> None:
    before = do(twin, "twin_address").json["result"]["pid"]
    assert do(twin, "work", 60).status == 502
    assert do(twin, "twin_address").json["result"]["pid"] != before
    assert twin.control("GET", "/world").json["killed_invocations"] == {"probe": 1}
    assert eventually(lambda: " Task timed out after 2.00 seconds" in twin.log_of("probe"))


def test_calls_at_the_same_time_run_in_several_processes(twin: RunningTwin) -> None:
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: do(twin, "work", 0.4), range(6)))
    assert [answer.status for answer in answers] == [200] * 6
    assert 2 <= len({answer.json["result"] for answer in answers}) <= 4


def test_its_lines_are_in_cloudwatch_logs(twin: RunningTwin) -> None:
    do(twin, "say", "something to remember")
    logs, group = twin.client("logs"), "/aws/lambda/trainmaster-ProbeFunction"

    def found() -> list[str]:
        answer = logs.filter_log_events(logGroupName=group, filterPattern="remember")
        return [event["message"] for event in answer["events"]]

    assert eventually(lambda: found() == ["something to remember"])


def test_a_message_on_the_queue_reaches_the_function_and_is_gone(twin: RunningTwin) -> None:
    url = do(twin, "twin_address").json["result"]["env"]["QUEUE_URL"]
    sent = {"QueueUrl": url, "MessageBody": "letter-1"}
    assert do(twin, "call", {"service": "sqs", "method": "send_message", "params": sent}).status == 200
    twin.advance(0)
    assert recorded(twin, "letter-1", 1)
    (event,) = events(twin, "letter-1")
    assert event["Records"][0]["body"] == "letter-1"
    assert event["Records"][0]["eventSource"] == "aws:sqs"
    twin.advance(3600)
    assert recorded(twin, "letter-1", 1)


def test_a_message_that_fails_twice_goes_to_the_dead_letters(twin: RunningTwin) -> None:
    sqs = twin.client("sqs")
    url = sqs.get_queue_url(QueueName="trainmaster-Queue")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="fail letter-2")
    twin.advance(0)
    assert recorded(twin, "letter-2", 1)
    twin.advance(61)
    assert recorded(twin, "letter-2", 2)
    twin.advance(61)
    assert recorded(twin, "letter-2", 2)
    assert bodies("DeadLetters", twin) == ["fail letter-2"]


def test_a_delayed_message_comes_when_it_is_due(twin: RunningTwin) -> None:
    sqs = twin.client("sqs")
    url = sqs.get_queue_url(QueueName="trainmaster-Queue")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="letter-3", DelaySeconds=30)
    twin.advance(29)
    assert events(twin, "letter-3") == []
    twin.advance(1)
    assert recorded(twin, "letter-3", 1)


def test_a_notice_on_the_topic_reaches_the_function(twin: RunningTwin) -> None:
    arn = f"arn:aws:sns:{twin.ready.region}:{twin.ready.account_id}:trainmaster-Topic"
    twin.client("sns").publish(TopicArn=arn, Message="notice-1")
    twin.advance(0)
    assert recorded(twin, "notice-1", 1)
    (event,) = events(twin, "notice-1")
    assert event["Records"][0]["Sns"]["Message"] == "notice-1"


def test_an_event_that_always_fails_is_tried_three_times_then_kept(twin: RunningTwin) -> None:
    entry = {"Source": "tests", "DetailType": "fail", "Detail": '{"mark": "event-1"}'}
    assert twin.client("events").put_events(Entries=[entry])["FailedEntryCount"] == 0
    twin.advance(0)
    assert recorded(twin, "event-1", 1)
    twin.advance(60)
    assert recorded(twin, "event-1", 2)
    twin.advance(120)
    assert recorded(twin, "event-1", 3)
    (record,) = [json.loads(body) for body in bodies("Failures", twin)]
    assert record["requestPayload"]["detail"] == {"mark": "event-1"}
    assert record["responsePayload"]["errorType"] == "RuntimeError"


def test_nobody_speaks_for_aws_on_the_event_bus(twin: RunningTwin) -> None:
    entry = {"Source": "aws.sagemaker", "DetailType": "x", "Detail": "{}"}
    answer = twin.client("events").put_events(Entries=[entry])
    assert answer["FailedEntryCount"] == 1
    assert answer["Entries"][0]["ErrorCode"] == "NotAuthorizedForSourceException"


def test_the_schedule_fires_each_minute_of_the_clock(twin: RunningTwin) -> None:
    before = len(events(twin, "aws.scheduler"))
    twin.advance(300)
    assert recorded(twin, "aws.scheduler", before + 5)
