"""O14: loops of submissions beyond the team's rate, at each door, on a clock that the client's waits move."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from trainmaster_client import errors, handles
from trainmaster_client.api import ApiClient
from trainmaster_client.hook import install
from trainmaster_client.http.rate_limits import ONCE_A_PROCESS, SaidOnce

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    REQUEST,
    SECRET_KEY,
    FakeApi,
    Received,
    Scripted,
    problem,
    view,
)
from tests.integration.client.fake_aws import FakeAws
from tests.integration.client.gateway_world import running_gateway

LIMIT = {"field": "pools.p5.limits.max_submissions_per_minute", "rule": "max_submissions_per_minute"}


class LimitedApi:
    """Takes so many submissions a minute, as the API does, and says how long the minute lasts."""

    def __init__(self, *, a_minute: int) -> None:
        self.now = 30.0
        self.a_minute = a_minute
        self.taken: list[str] = []
        self.keys: dict[str, set[str]] = {}
        self._in_minute: Counter[int] = Counter()
        self._counting = threading.Lock()

    def sleep(self, seconds: float) -> None:
        with self._counting:
            self.now += seconds

    def answer(self, received: Received) -> Scripted:
        name = json.loads(received.body)["TrainingJobName"]
        with self._counting:
            self.keys.setdefault(name, set()).add(received.headers["idempotency-key"])
            minute, left = int(self.now // 60), 60 - int(self.now) % 60
            if self._in_minute[minute] >= self.a_minute:
                return refused(left)
            self._in_minute[minute] += 1
            self.taken.append(name)
        return Scripted(status=201, document={"job": view(name), "warnings": []})


def refused(seconds: int, **changes: str) -> Scripted:
    """As ``core/submission/team_limits.py`` refuses."""
    message = "team vision has submitted or changed 100 jobs of pool p5 in this minute"
    error = LIMIT | {"message": message, "hint": f"try again in {seconds} s"} | changes
    document = problem(429, "Too many requests", error["message"], error).document
    return Scripted(status=429, document=document, headers={"Retry-After": str(seconds)})


@pytest.fixture
def limited(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> LimitedApi:
    limited = LimitedApi(a_minute=100)
    monkeypatch.setattr(api, "answer", limited.answer)
    monkeypatch.setattr("time.sleep", limited.sleep)
    monkeypatch.setattr(ONCE_A_PROCESS, "_has_said", False)
    return limited


@pytest.fixture
def session() -> boto3.Session:
    session = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    FakeAws().attach(session)
    return session


def named(number: int) -> dict[str, Any]:
    return REQUEST | {"TrainingJobName": f"sweep-{number}"}


def all_came(limited: LimitedApi, count: int) -> bool:
    """Each once, with one key however often it was sent, within the minutes that it takes."""
    keys = [limited.keys[f"sweep-{number}"] for number in range(count)]
    minutes = -(-count // limited.a_minute)
    return (
        limited.taken == [f"sweep-{number}" for number in range(count)]
        and all(len(one) == 1 for one in keys)
        and len(set.union(*keys)) == count
        and limited.now < 60 * (minutes + 1)
    )


ONE_LINE = (
    "trainmaster: team vision has submitted or changed 100 jobs of pool p5 in this minute; "
    "waiting 30 s, then trying again (said once)\n"
)


def test_O14_C5_250_submissions_in_a_loop_all_arrive_through_the_hooks(
    limited: LimitedApi, api: FakeApi, session: boto3.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    install(session, api_url=api.url)
    client = session.client("sagemaker")
    for number in range(250):
        client.create_training_job(**named(number))
    assert all_came(limited, 250)
    assert capsys.readouterr() == ("", ONE_LINE)


def test_O14_a_client_for_each_submission_says_it_once_too(
    limited: LimitedApi, api: FakeApi, session: boto3.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(250):
        handles.submit(named(number), api_url=api.url, boto_session=session)
    assert all_came(limited, 250)
    assert capsys.readouterr() == ("", ONE_LINE)


def test_O14_the_command_line_waits_and_says_so(
    limited: LimitedApi, trainmaster: Trainmaster, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited.a_minute = 3
    ran = []
    for number in range(7):
        monkeypatch.setattr(ONCE_A_PROCESS, "_has_said", False)
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(named(number)))
        ran.append(trainmaster("submit", str(file)))
    assert all_came(limited, 7)
    assert [one.code for one in ran] == [0] * 7
    assert [one.err.count("waiting") for one in ran] == [0, 0, 0, 1, 0, 0, 1]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LimitedApi, Any]]:
    with running_gateway() as world:
        limited = LimitedApi(a_minute=100)
        monkeypatch.setattr(world.api, "answer", limited.answer)
        monkeypatch.setattr("time.sleep", limited.sleep)
        yield limited, world.client()


def test_O14_a_loop_through_the_gateway_arrives_though_its_client_tries_once(
    many: tuple[LimitedApi, Any],
) -> None:
    limited, client = many
    for number in range(120):
        client.create_training_job(**named(number))
    assert all_came(limited, 120)


def test_the_wait_of_several_programs_that_share_a_rate_ends_when_it_is_their_turn(
    api: FakeApi, session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.script("POST", "/add-job", *[refused(60)] * 9, Scripted(document={"job": view(), "warnings": []}))
    pauses: list[float] = []
    said: list[str] = []
    client = ApiClient(api.url, session, pause=pauses.append, say=said.append)
    assert client.add_job(REQUEST)["job"]["name"] == "job1"
    assert (pauses, len(said)) == ([60.0] * 9, 9)


def test_a_rate_that_never_has_a_turn_is_reported_after_ten_waits(
    api: FakeApi, session: boto3.Session
) -> None:
    api.script("POST", "/add-job", refused(60))
    pauses: list[float] = []
    with pytest.raises(errors.TooManyRequestsError):
        ApiClient(api.url, session, pause=pauses.append, say=lambda _: None).add_job(REQUEST)
    assert pauses == [60.0] * 10


@pytest.mark.parametrize(
    ("method", "path", "call"),
    [
        ("PATCH", "/jobs/job1", lambda api: api.change("job1", priority=5)),
        ("DELETE", "/jobs/job1", lambda api: api.cancel("job1")),
        ("GET", "/jobs/job1", lambda api: api.job("job1")),
        ("GET", "/jobs", lambda api: api.jobs_unless("tag")),
        ("POST", "/add-job", lambda api: api.try_job(REQUEST)),
    ],
)
def test_every_call_waits_for_a_limit_that_passes(
    method: str, path: str, call: Any, api: FakeApi, session: boto3.Session
) -> None:
    api.script(method, path, refused(53), Scripted(document={"name": "job1"}))
    pauses: list[float] = []
    assert call(ApiClient(api.url, session, pause=pauses.append, say=lambda _: None)) == {"name": "job1"}
    assert pauses == [53.0]


def test_a_queue_that_is_full_is_said_at_once_as_no_clock_empties_it(
    api: FakeApi, session: boto3.Session
) -> None:
    full = refused(60, rule="max_waiting", message="5000 jobs wait", hint="cancel some, or wait")
    api.script("POST", "/add-job", full)
    with pytest.raises(errors.TooManyRequestsError) as caught:
        ApiClient(api.url, session, pause=lambda _: pytest.fail("it waited")).add_job(REQUEST)
    assert str(caught.value) == (
        "Too many requests (429): pools.p5.limits.max_submissions_per_minute: 5000 jobs wait "
        "[max_waiting]; cancel some, or wait"
    )


@pytest.mark.parametrize("seconds", [61, 3600])
def test_C5_no_sentence_comes_twice_where_a_wait_is_too_long(
    seconds: int, api: FakeApi, session: boto3.Session
) -> None:
    """Behind the hooks, where it was seen."""
    api.script("POST", "/add-job", refused(seconds))
    install(session, api_url=api.url)
    with pytest.raises(ClientError) as caught:
        session.client("sagemaker").create_training_job(**REQUEST)
    text = caught.value.response["Error"]["Message"]
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    assert text.count(f"try again in {seconds} s") == 1
    assert text.count("in this minute") == 1


def test_a_line_for_standard_error_is_printed_once_by_many_threads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say = SaidOnce()
    threads = [threading.Thread(target=say, args=(f"line {number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)


def test_a_program_without_a_console_is_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    SaidOnce()("a line")
