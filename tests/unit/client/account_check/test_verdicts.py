"""Verdicts from recorded answers: what AWS might say, and whether the code could live with it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from trainmaster_client.account_check.answer_verdicts import is_only_the_quota
from trainmaster_client.account_check.examination import FACTS
from trainmaster_client.account_check.facts import Need, Word
from trainmaster_client.account_check.measured import measured

Records = dict[str, Any]
TAKEN = {"code": None, "text": "", "status": 200}


def said(code: str, text: str = "no", status: int = 400) -> dict[str, Any]:
    return {"code": code, "text": text, "status": status}


def ended(status: str, secondary: str, **more: Any) -> dict[str, Any]:
    final = {"TrainingJobStatus": status, "SecondaryStatus": secondary, **more.pop("final", {})}
    return {"name": "job", "statuses": ["Starting", secondary], "final": final, **more}


def probe(fact: str, answer: dict[str, Any]) -> Records:
    return {"probes": {fact: answer}}


def burst(admitted: float, code: str = "ThrottlingException") -> Records:
    one = {
        "calls": 60,
        "seconds": 5.0,
        "throttled": 40,
        "codes": {},
        "refusals": [said(code, "Rate exceeded")],
        "admitted_per_second": admitted,
    }
    return {"bursts": {"DescribeTrainingJob": one}}


PLAN = "arn:aws:sagemaker:eu-west-1:111122223333:training-plan/spring"
ENDS_MS = 1_790_000_000_000


def plan(job: dict[str, Any] | None = None, **more: Any) -> Records:
    """Records of the trial on a plan; ``job``: of a job that ended with this in its description."""
    ends = datetime.fromtimestamp(ENDS_MS / 1000, UTC).isoformat()
    jobs = {} if job is None else {"plan": ended("Failed", "Failed", final=job)}
    return {"plan": {"arn": PLAN, "ends": ends, **more}, "jobs": jobs}


def event(**changes: Any) -> dict[str, Any]:
    plain = {
        "job": "job",
        "status": "Completed",
        "secondary": "Completed",
        "modified": 2000,
        "seconds": 1.5,
        "has_tags": True,
        "fields": ["SecondaryStatus", "TrainingJobName", "TrainingJobStatus"],
    }
    return plain | changes


def starved(status: str, secondary: str, minutes: int, **final: Any) -> Records:
    times = {"created_at": "2026-11-22T10:00:00+00:00", "ended_at": f"2026-11-22T10:{minutes}:00+00:00"}
    return {"jobs": {"starved": ended(status, secondary, final=final, **times)}}


LIMIT = said("ResourceLimitExceeded")
BAD = said("ValidationException")
GONE = said("ValidationException", "Requested resource not found.")
OK, DIFFERS, SKIPPED = Word.OK, Word.DIFFERS, Word.SKIPPED
CASES = [
    pytest.param("refused-role", probe("refused-role", BAD), OK, id="a bad role is refused for good"),
    pytest.param("refused-role", probe("refused-role", TAKEN), OK, id="a bad role is found out later"),
    pytest.param(
        "refused-role", probe("refused-role", LIMIT), DIFFERS, id="a bad role is said to be a limit"
    ),
    pytest.param("refused-image", probe("refused-image", said("ImageNope")), DIFFERS, id="an unknown code"),
    pytest.param(
        "refused-image",
        probe("refused-image", said("ThrottlingException")),
        SKIPPED,
        id="throttled to the end",
    ),
    pytest.param("refused-instances", probe("refused-instances", LIMIT), OK, id="too many is a limit"),
    pytest.param("refused-instances", probe("refused-instances", BAD), DIFFERS, id="too many is for good"),
    pytest.param("refused-keep-alive", probe("refused-keep-alive", BAD), OK, id="keep-alive, either way"),
    pytest.param("refused-quota-zero", probe("refused-quota-zero", BAD), DIFFERS, id="quota 0 is for good"),
    pytest.param("pending-cpu", probe("pending-cpu", BAD), OK, id="no pending time on a CPU"),
    pytest.param("rate-describe", burst(2.1), OK, id="throttled above two a second"),
    pytest.param("rate-describe", burst(0.5), DIFFERS, id="throttled below what is assumed"),
    pytest.param("rate-list", burst(2.1), None, id="not measured"),
    pytest.param("used-name", {"used_name": said("ResourceInUse")}, OK, id="a used name"),
    pytest.param("used-name", {"used_name": BAD}, DIFFERS, id="a used name said to be invalid"),
    pytest.param("unknown-name", {"unknown_name": {"DescribeTrainingJob": GONE}}, OK, id="an unknown name"),
    pytest.param("unknown-name", {"unknown_name": {"StopTrainingJob": BAD}}, OK, id="nothing to stop"),
    pytest.param(
        "unknown-name", {"unknown_name": {"DescribeTrainingJob": BAD}}, DIFFERS, id="unknown in other words"
    ),
    pytest.param(
        "unknown-name",
        {"unknown_name": {"StopTrainingJob": said("Gone")}},
        DIFFERS,
        id="a new word for unknown",
    ),
    pytest.param(
        "read-after-create", {"first_read_seconds": {"ListTags": 7.5}}, OK, id="tags after some seconds"
    ),
    pytest.param("read-after-create", {"first_read_seconds": {"ListTags": None}}, DIFFERS, id="tags never"),
    pytest.param(
        "stop-starting",
        {"jobs": {"early": ended("Stopped", "Stopped", stop={"in": "Starting", "seconds": 3.0})}},
        OK,
        id="stopped while Starting",
    ),
    pytest.param(
        "stop-starting",
        {"jobs": {"early": ended("Failed", "Failed", stop={"in": "Starting"})}},
        DIFFERS,
        id="a stopped job that failed",
    ),
    pytest.param(
        "stop-starting",
        {"jobs": {"early": ended("Stopped", "Stopped", stop={"in": "Training"})}},
        SKIPPED,
        id="not caught in time",
    ),
    pytest.param("stop-ended", {"stop_ended": BAD}, OK, id="stop of what has ended"),
    pytest.param("stop-ended", {"stop_ended": TAKEN}, OK, id="stop of what has ended is taken"),
    pytest.param(
        "slot-free",
        {"slot": {"looks": [{"seconds": 0, "used": 1}, {"seconds": 2.0, "used": 0}]}},
        OK,
        id="free at once",
    ),
    pytest.param(
        "slot-free",
        {"slot": {"looks": [{"seconds": 0, "used": 1}, {"seconds": 60.0, "used": 1}]}},
        DIFFERS,
        id="counted for more than a minute",
    ),
    pytest.param(
        "event-number", {"jobs": {"x": ended("Completed", "Completed")}, "events": [event()]}, OK, id="told"
    ),
    pytest.param(
        "event-number",
        {"jobs": {"x": ended("Completed", "Completed")}, "events": []},
        DIFFERS,
        id="no events",
    ),
    pytest.param("event-fields", {"events": [event(fields=["TrainingJobName"])]}, DIFFERS, id="no status"),
    pytest.param("event-tags", {"events": [event(has_tags=False)]}, OK, id="no tags is no harm"),
    pytest.param("event-delay", {"events": [event(seconds=900.0)]}, DIFFERS, id="a quarter of an hour late"),
    pytest.param(
        "event-order", {"events": [event(modified=2), event(modified=1)]}, OK, id="in any order is no harm"
    ),
    pytest.param(
        "statuses",
        {"known_statuses": ["Starting"], "jobs": {"x": ended("Stopped", "Vanished")}},
        DIFFERS,
        id="a status nobody knows",
    ),
    pytest.param(
        "billable",
        {"jobs": {"ends": ended("Completed", "Completed", final={"BillableTimeInSeconds": 60})}},
        OK,
        id="billed",
    ),
    pytest.param("billable", {"jobs": {"ends": ended("Completed", "Completed")}}, DIFFERS, id="not billed"),
    pytest.param(
        "stop-grace",
        {"jobs": {"deaf": ended("Stopped", "Stopped", signs={"term": 100, "last": 218})}},
        OK,
        id="two minutes of grace",
    ),
    pytest.param(
        "stop-grace",
        {"jobs": {"deaf": ended("Stopped", "Stopped", signs={"term": 100, "last": 130})}},
        DIFFERS,
        id="half a minute of grace",
    ),
    pytest.param(
        "exit-code",
        {"jobs": {"fails": ended("Failed", "Failed", final={"FailureReason": "AlgorithmError: ExitCode 3"})}},
        OK,
        id="the exit code is said",
    ),
    pytest.param(
        "exit-code",
        {"jobs": {"fails": ended("Failed", "Failed", final={"FailureReason": "AlgorithmError"})}},
        DIFFERS,
        id="no exit code",
    ),
    pytest.param("upload", {"uploads": {"hears": ["checkpoints/hears/after-sigterm"]}}, OK, id="kept"),
    pytest.param("upload", {"uploads": {"hears": []}}, DIFFERS, id="lost after SIGTERM"),
    pytest.param("warm-quota", {"warm": {"create": LIMIT}}, OK, id="keep-alive refused"),
    pytest.param("warm-quota", {"warm": {"create": said("Odd")}}, DIFFERS, id="refused with an odd code"),
    pytest.param("warm-match", {"warm": {"create": TAKEN, "status": None}}, SKIPPED, id="no pool to match"),
    pytest.param(
        "warm-match",
        {"warm": {"status": "Available", "reused": "Available", "reused_by": None}},
        DIFFERS,
        id="the pool was not taken",
    ),
    pytest.param(
        "warm-release",
        {"warm": {"release": {"status": "Available", "seconds": 90.0, "answer": TAKEN}}},
        DIFFERS,
        id="kept though released",
    ),
    pytest.param("warm-none", {"warm": {"none": BAD}}, OK, id="no pool to keep"),
    pytest.param(
        "gpu-metrics", {"gpu": {"training_at": "x", "waited": 480.0}}, DIFFERS, id="no metrics in time"
    ),
    pytest.param(
        "gpu-alarm", {"gpu": {"training_at": "x", "waited": 300.0, "alarm_seconds": 290.0}}, OK, id="it rang"
    ),
    pytest.param("pending-end", starved("Stopped", "MaxPendingTimeExceeded", 31), OK, id="pending: stopped"),
    pytest.param("pending-end", starved("Failed", "Failed", 31), OK, id="pending: failed"),
    pytest.param("pending-end", starved("Stopped", "Stopped", 12), DIFFERS, id="pending: before its time"),
    pytest.param(
        "pending-end",
        starved("Stopped", "Stopped", 31, BillableTimeInSeconds=60),
        DIFFERS,
        id="pending: billed",
    ),
    pytest.param(
        "pending-end",
        starved("Stopped", "Stopped", 31, TrainingStartTime="x"),
        SKIPPED,
        id="there was capacity",
    ),
    pytest.param(
        "plan-describe", plan(described=PLAN, listed=True, in_use=1), OK, id="a plan: as it was sent"
    ),
    pytest.param("plan-describe", plan(described=None, listed=True, in_use=1), DIFFERS, id="a plan: dropped"),
    pytest.param(
        "plan-describe", plan(described=PLAN, listed=False, in_use=1), DIFFERS, id="a plan: unlisted"
    ),
    pytest.param("plan-describe", plan(), None, id="a plan: not looked at"),
    pytest.param(
        "plan-events",
        plan(job={}) | {"events": [event(job="job", plan=PLAN), event(job="job"), event(job="other")]},
        OK,
        id="a plan: in one event of two",
    ),
    pytest.param("plan-events", plan(job={}) | {"events": [event(job="other")]}, None, id="a plan: no event"),
    pytest.param("plan-block-end", plan(job={"FailureReason": f"block {ENDS_MS}"}), OK, id="the end in ms"),
    pytest.param(
        "plan-block-end", plan(job={"FailureReason": f"block {ENDS_MS // 1000}"}), DIFFERS, id="in seconds"
    ),
    pytest.param("plan-block-end", plan(job={"FailureReason": "block "}), DIFFERS, id="no such variable"),
    pytest.param("plan-block-end", plan(job={}), None, id="no reason told"),
    pytest.param("plan-close", plan(after_close="Pending"), OK, id="a close: it waits again"),
    pytest.param("plan-close", plan(after_close="Failed"), OK, id="a close: it ended"),
    pytest.param("plan-close", plan(after_close="Training"), DIFFERS, id="a close: it trains on"),
    pytest.param("plan-close", plan(), SKIPPED, id="no close yet"),
    pytest.param("plan-right", plan(answer=TAKEN), SKIPPED, id="a caller with every right"),
    pytest.param(
        "plan-right", plan(answer=said("AccessDenied", f"on resource: {PLAN}")), OK, id="refused for the plan"
    ),
    pytest.param(
        "plan-right", plan(answer=said("ValidationException")), None, id="refused for another reason"
    ),
]


VERDICTS = {fact.id: fact.judge for fact in FACTS if Need.STACK not in fact.needs}


@pytest.mark.parametrize(("fact", "records", "word"), CASES)
def test_the_verdict_is_what_the_code_could_live_with(fact: str, records: Records, word: Word | None) -> None:
    verdict = VERDICTS[fact](records)
    assert (verdict.word if verdict else None) == word


def test_a_full_quota_says_nothing_of_a_bad_role_and_much_of_too_many_instances() -> None:
    assert is_only_the_quota("refused-role", LIMIT)
    assert not is_only_the_quota("refused-role", BAD)
    assert not is_only_the_quota("refused-instances", LIMIT)


def test_every_fact_has_a_case() -> None:
    like_another = {"stop-downloading", "stop-training", "latency"}
    several = ("refused-", "pending-", "rate-")
    assert {case.values[0] for case in CASES} | like_another >= {
        fact for fact in VERDICTS if not fact.startswith(several)
    }


def test_throttled_calls_do_not_count_for_the_latency() -> None:
    def call(seconds: float, code: str | None = None) -> dict[str, Any]:
        return {"operation": "DescribeTrainingJob", "seconds": seconds, "code": code}

    records = {"calls": [call(0.4), call(0.0, "ThrottlingException"), call(0.5)]}
    assert measured(records)["latency_seconds"] == {"p50": 0.5, "p99": 0.5}
    slow = VERDICTS["latency"]({"calls": [call(11.0)]})
    assert slow is not None
    assert slow.word is DIFFERS


def test_what_was_measured_is_named_as_a_world_names_it() -> None:
    records = {
        "events": [event(), event(), event(modified=3000, has_tags=False, seconds=9.0)],
        "probes": {"refused-run-time": said("ResourceLimitExceeded", "limit 'x' is 432000 Seconds, with")},
        "quotas": {"ml.m5.large": 4.0, "ml.m5.large warm": 0.0},
        **burst(2.1),
        **starved("Stopped", "MaxPendingTimeExceeded", 31),
    }
    assert measured(records) == {
        "rates": {"DescribeTrainingJob": 2.1},
        "events": 3,
        "event_delay_seconds": [1.5, 9.0],
        "events_without_tags": 0.333,
        "events_doubled": 0.333,
        "warm_pool_quota": 0,
        "quotas": {"ml.m5.large": 4},
        "max_runtime_seconds": 432000,
        "pending_end": "Stopped/MaxPendingTimeExceeded",
    }
