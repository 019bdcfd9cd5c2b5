"""The commands about the queue's order, its pools and its costs, against the fake API."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.client.command import Ran, Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, problem, view

P5 = "ml.p5.48xlarge"
REQUEST = {"TrainingJobName": "job1", "Tags": [{"Key": "priority", "Value": "3"}]}


def script(api: FakeApi, method: str, path: str, document: Any, status: int = 200) -> None:
    api.script(method, path, Scripted(status=status, document=document))


@pytest.fixture
def request_file(tmp_path: Path) -> str:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(REQUEST))
    return str(file)


# ---- why


def queue(api: FakeApi, *pending: dict[str, Any]) -> None:
    """The pool's jobs."""
    script(api, "GET", "/jobs", {"jobs": list(pending), "next_token": None})


def test_why_names_the_reason_who_is_ahead_the_likely_start_and_what_would_help(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    estimate = {"p50": "2001-11-21T02:00:00Z", "p90": "2001-11-21T03:00:00Z"}
    reason = {"code": "ahead", "message": "job0 is ahead and waits for ml.p5.48xlarge=2"}
    script(api, "GET", "/jobs/job1", view(waiting=reason, estimated_start=estimate))
    others = [view("job0", position=1, priority=7), view(None, position=2, team="speech"), view("job1")]
    queue(api, *others)
    assert trainmaster("why", "job1").out.splitlines() == [
        "job1: Waiting, position 3 in pool p5 - ahead: job0 is ahead and waits for ml.p5.48xlarge=2",
        "  Likely start: any moment now",
        (
            "  Ahead: job0 (priority 7, 1x ml.p5.48xlarge),"
            " (other team's) of team speech (priority 1, 1x ml.p5.48xlarge)"
        ),
        "  What would help: raise its priority: trainmaster priority job1 N",
    ]


def test_why_counts_those_ahead_that_it_does_not_name(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "GET", "/jobs/job1", view(position=40))
    others = [view(f"other-{number}", position=number) for number in range(1, 10)]
    queue(api, *others)
    ahead = next(line for line in trainmaster("why", "job1").out.splitlines() if "Ahead" in line)
    assert ahead.endswith("other-5 (priority 1, 1x ml.p5.48xlarge) and 34 more")


def test_why_of_the_first_in_turn_that_waits_for_no_instances_asks_for_no_others(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    paused = {"code": "paused", "message": "starts are paused"}
    script(api, "GET", "/jobs/job1", view(position=1, waiting=paused))
    assert trainmaster("why", "job1").code == 0
    assert api.calls() == ["GET /jobs/job1"]


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


RUNNING: dict[str, Any] = {"state": "running", "position": None}
LATER, LATEST = "2999-11-21T11:30:00Z", "2999-11-21T12:30:00Z"


@pytest.mark.usefixtures("in_berlin")
def test_why_names_who_uses_the_instances_until_when_in_one_time_zone(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    reason = {"code": "reservation", "message": "would delay job0, which starts at 2999-11-21T11:30:00.000Z"}
    script(api, "GET", "/jobs/job1", view(position=1, waiting=reason))
    queue(
        api,
        view("late", **RUNNING, ends_by=LATEST),
        view("unknown", **RUNNING, ends_by=None),
        view(None, **RUNNING, team="speech", ends_by=LATER),
        view("other-type", **RUNNING, ends_by=LATER, instances={"ml.g5.xlarge": 1}),
        view("due", **RUNNING, ends_by="2001-11-21T11:30:00Z"),
    )
    lines = [re.sub(r"in \d+d\d+h", "in DAYS", line) for line in trainmaster("why", "job1").out.splitlines()]
    assert lines == [
        (
            "job1: Waiting, position 1 in pool p5 - reservation: would delay job0,"
            " which starts at 2999-11-21 12:30"
        ),
        "  In use by:",
        "    due of team default: 1x ml.p5.48xlarge, due to end",
        (
            "    (other team's) of team speech: 1x ml.p5.48xlarge,"
            " until 2999-11-21 12:30 at the latest (in DAYS)"
        ),
        "    late of team default: 1x ml.p5.48xlarge, until 2999-11-21 13:30 at the latest (in DAYS)",
        "    unknown of team default: 1x ml.p5.48xlarge, no certain end yet",
        (
            "  What would help: set a shorter MaxRuntimeInSeconds:"
            " a job that is certain to end in time may go first"
        ),
        "  Times are CET (UTC+01:00).",
    ]


def test_under_a_quota_the_jobs_of_the_team_are_those_to_wait_for(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    script(api, "GET", "/jobs/job1", view(position=1, waiting={"code": "quota", "message": "uses it all"}))
    queue(api, view("own", **RUNNING), view(None, **RUNNING, team="speech"))
    lines = trainmaster("why", "job1").out.splitlines()
    assert lines[1:3] == ["  In use by:", "    own of team default: 1x ml.p5.48xlarge, no certain end yet"]
    assert "speech" not in str(lines)


def test_of_many_that_use_the_instances_the_first_to_end_are_named(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    script(api, "GET", "/jobs/job1", view(position=1))
    queue(api, *(view(f"busy-{number}", **RUNNING) for number in range(9)))
    lines = trainmaster("why", "job1").out.splitlines()
    assert lines[2].startswith("    busy-0 of team default")
    assert lines[7] == "    and 4 more"


def test_why_of_a_job_that_runs_says_so(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "GET", "/jobs/job1", view(state="running", waiting=None, position=None))
    assert trainmaster("why", "job1") == Ran(0, "job1 does not wait: it is running\n", "")


def started(attempt: int, message: str | None) -> dict[str, Any]:
    """One start in a job's history."""
    reason = None if message is None else {"code": "cheapest", "message": message}
    at = f"2026-11-21T0{attempt}:00:00Z"
    return {"at": at, "attempt": attempt, "from": "pending", "to": "starting", "reason": reason}


BECAUSE = "4 x small: 1.31x the tokens per USD of 1 x large, measured on 4 runs"


@pytest.mark.parametrize(
    ("starts", "line"),
    [
        pytest.param([started(0, BECAUSE)], [f"  Started in this shape: {BECAUSE}"], id="the cheapest"),
        pytest.param(
            [started(0, BECAUSE), started(1, "large=1 is number 2")],
            ["  Started in this shape: large=1 is number 2"],
            id="the newest attempt counts",
        ),
        pytest.param(
            [started(0, BECAUSE), started(1, None)], [f"  Shapes: {BECAUSE}"], id="it has left spot since"
        ),
        pytest.param([], [f"  Shapes: {BECAUSE}"], id="its history is gone"),
    ],
)
def test_why_of_a_job_that_runs_says_why_in_its_shape(
    trainmaster: Trainmaster, api: FakeApi, starts: list[dict[str, Any]], line: list[str]
) -> None:
    running = {"state": "running", "waiting": None, "position": None}
    script(api, "GET", "/jobs/job1", view(**running, history=starts, shapes_because=BECAUSE))
    assert trainmaster("why", "job1").out.splitlines() == ["job1 does not wait: it is running", *line]


@pytest.mark.usefixtures("in_berlin")
def test_why_of_an_idle_job_says_when_it_is_stopped(trainmaster: Trainmaster, api: FakeApi) -> None:
    attempt = {"attempt": 0, "idle_since": "2001-11-21T01:00:00Z", "stop_due": "2001-11-21T01:10:00Z"}
    script(api, "GET", "/jobs/job1", view(state="running", attempts=[attempt]))
    warning = "its GPUs have been idle since {}; it will be stopped at {} unless they are used again"
    here = warning.format("2001-11-21 02:00", "2001-11-21 02:10")
    ran = trainmaster("why", "job1")
    assert ran.out.splitlines() == [
        "job1 does not wait: it is running",
        f"  {here}",
        "  Times are CET (UTC+01:00).",
    ]
    script(api, "GET", "/jobs/job1", view(state="running", attempts=[attempt]))
    utc = warning.format("2001-11-21 01:00:00", "2001-11-21 01:10:00")
    assert f"     {utc}" in trainmaster("show", "job1").out.splitlines()


@pytest.mark.usefixtures("in_berlin")
def test_why_of_a_held_job_tells_how_to_release_it(trainmaster: Trainmaster, api: FakeApi) -> None:
    held = {"code": "held", "message": "held by ann since 2001-11-21T01:00:00Z"}
    script(api, "GET", "/jobs/job1", view(state="held", waiting=held, position=None))
    assert trainmaster("why", "job1").out.splitlines() == [
        "job1: Waiting, held - held by ann since 2001-11-21 02:00",
        "  What would help: run: trainmaster release job1",
        "  Times are CET (UTC+01:00).",
    ]


# ---- priority, hold, release


@pytest.mark.parametrize(
    ("arguments", "body", "said"),
    [
        (["priority", "job1", "7"], {"priority": 7}, "job1: priority 7, Waiting, position 3 in pool p5"),
        (["hold", "job1"], {"held": True}, "job1: Waiting, position 3 in pool p5"),
        (["release", "job1"], {"held": False}, "job1: Waiting, position 3 in pool p5"),
    ],
)
def test_a_change_is_sent_and_what_became_of_the_job_is_said(
    arguments: list[str], body: dict[str, Any], said: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    script(api, "PATCH", "/jobs/job1", view(waiting=None))
    assert trainmaster(*arguments) == Ran(0, f"{said}\n", "")
    assert json.loads(api.received[0].body) == body


def test_a_running_job_that_gets_another_priority_runs_on(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "PATCH", "/jobs/job1", view(state="running"))
    assert trainmaster("priority", "job1", "7").out == "job1: priority 7, running\n"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(problem(404, "Not found", "no job of your teams has this name"), 4, id="no such job"),
        pytest.param(problem(409, "Conflict", "the job is running"), 1, id="it runs"),
        pytest.param(problem(422, "Not allowed by the policy", "above the ceiling"), 1, id="too high"),
        pytest.param(problem(503, "Try again", "the job kept changing"), 3, id="lost races"),
    ],
)
def test_a_refused_change_is_one_message(
    answer: Scripted, code: int, trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("PATCH", "/jobs/job1", answer)
    ran = trainmaster("hold", "job1")
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("trainmaster: ")
    assert len(ran.err.splitlines()) == 1


# ---- submit


def test_submit_sends_the_file_as_it_is_and_says_where_the_job_waits(
    trainmaster: Trainmaster, api: FakeApi, request_file: str
) -> None:
    warning = {"field": "Tags[0]", "message": "trainmaster:retries is kept", "hint": "do not rely on it yet"}
    script(api, "POST", "/add-job", {"job": view(), "warnings": [warning]}, status=201)
    assert trainmaster("submit", request_file).out.splitlines() == [
        "job1: Waiting, position 3 in pool p5 - capacity: needs 1 ml.p5.48xlarge, 0 are free",
        "Warning: Tags[0]: trainmaster:retries is kept; do not rely on it yet",
    ]
    assert json.loads(api.received[0].body) == REQUEST
    assert api.received[0].query == {}


def test_submit_as_json_is_what_the_api_said(
    trainmaster: Trainmaster, api: FakeApi, request_file: str
) -> None:
    answer = {"job": view(), "warnings": []}
    script(api, "POST", "/add-job", answer, status=201)
    assert json.loads(trainmaster("submit", request_file, "--json").out) == answer


FORESEEN = {
    "valid": True,
    "violations": [],
    "pool": "p5",
    "position": 2,
    "estimated_start": {"p50": "2001-11-21T02:00:00Z", "p90": "2001-11-21T03:00:00Z"},
    "would_preempt": ["low", None],
    "estimated_cost_usd": 12.5,
    "spot_record": [],
}


def test_a_dry_run_tells_place_start_victims_and_cost(
    trainmaster: Trainmaster, api: FakeApi, request_file: str
) -> None:
    script(api, "POST", "/add-job", FORESEEN)
    ran = trainmaster("submit", request_file, "--dry-run")
    assert (ran.code, ran.out.splitlines()) == (
        0,
        [
            "Valid: it would wait in pool p5, at position 2.",
            "Likely start: any moment now.",
            "It would preempt: low, a job of another team.",
            "Likely cost in USD: 12.5.",
        ],
    )
    assert api.received[0].query == {"dry_run": ["true"]}


def test_a_dry_run_tells_how_often_its_spot_instances_were_taken_away(
    trainmaster: Trainmaster, api: FakeApi, request_file: str
) -> None:
    records = [
        {"instance_type": "ml.p5.48xlarge", "expected_interruptions": 1.25},
        {"instance_type": "ml.g5.xlarge", "expected_interruptions": None},
    ]
    script(api, "POST", "/add-job", FORESEEN | {"spot_record": records})
    assert trainmaster("submit", request_file, "--dry-run").out.splitlines()[-2:] == [
        "Spot ml.p5.48xlarge: at the recent rate it would be interrupted 1.25 times.",
        "Spot ml.g5.xlarge: no job of this stack ran on it in the last 30 days.",
    ]


def test_a_dry_run_that_knows_little_says_so(
    trainmaster: Trainmaster, api: FakeApi, request_file: str
) -> None:
    unknown = dict.fromkeys(("position", "estimated_start", "estimated_cost_usd"))
    script(api, "POST", "/add-job", FORESEEN | unknown | {"would_preempt": []})
    assert trainmaster("submit", request_file, "--dry-run").out.splitlines() == [
        "Valid: it would wait in pool p5, behind more than 1000 jobs.",
        "Likely cost in USD: unknown, a price is missing.",
    ]


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_dry_run_of_what_would_be_refused_is_exit_code_1(
    as_json: list[str], trainmaster: Trainmaster, api: FakeApi, request_file: str
) -> None:
    violation = {
        "field": "Tags[0].Value",
        "message": "too high",
        "hint": "ask for less",
        "rule": "max-priority",
    }
    answer = {**FORESEEN, "valid": False, "violations": [violation]}
    script(api, "POST", "/add-job", answer)
    ran = trainmaster("submit", request_file, "--dry-run", *as_json)
    assert ran.code == 1
    if as_json:
        assert json.loads(ran.out) == answer
    else:
        assert ran.out.splitlines() == [
            "Not valid: it would be refused.",
            "  Tags[0].Value: too high [max-priority]; ask for less",
        ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "line 1 column 2", id="cut off"),
        pytest.param("[]", "holds no request", id="a list"),
        pytest.param('{"Tags": [], "Tags": []}', "'Tags' is written twice", id="a key twice"),
        pytest.param("\xff", "can't decode", id="no text"),
    ],
)
def test_a_file_that_holds_no_request_is_exit_code_2_and_nothing_is_sent(
    text: str, message: str, trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "job.json"
    file.write_bytes(text.encode("latin-1"))
    ran = trainmaster("submit", str(file))
    assert (ran.code, ran.out, api.received) == (2, "", [])
    assert message in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_queue_that_is_full_is_said_at_once(
    trainmaster: Trainmaster, api: FakeApi, request_file: str
) -> None:
    waiting = "5000 jobs of team a already wait in pool p5"
    hint = "cancel some, or submit again once some have started"
    error = {"field": "pools.p5.limits.max_waiting", "message": waiting, "hint": hint, "rule": "max_waiting"}
    refused = problem(429, "Too many requests", waiting, error)
    api.script("POST", "/add-job", Scripted(status=429, raw=refused.body, headers={"Retry-After": "60"}))
    ran = trainmaster("submit", request_file)
    assert ran.code == 1
    assert ran.err == (
        "trainmaster: Too many requests (429): pools.p5.limits.max_waiting: 5000 jobs of team a already "
        "wait in pool p5 [max_waiting]; cancel some, or submit again once some have started\n"
    )
    assert api.calls() == ["POST /add-job"]


# ---- pools


POOL = {
    "name": "p5",
    "capacity": {P5: 4},
    "spot_capacity": {P5: 1},
    "used": {"on-demand": {P5: 2}, "spot": {}},
    "warm": {"on-demand": {P5: 1}, "spot": {}},
    "free": {"on-demand": {P5: 1}, "spot": {P5: 1}},
    "warm_pools": [{"instance_type": P5, "instances": 1, "expires_at": "2026-11-21T02:00:00Z"}],
    "teams": [
        {
            "name": "vision",
            "used": {"on-demand": {P5: 2}, "spot": {P5: 1}},
            "borrowed": {"on-demand": {P5: 1}, "spot": {}},
            "quota": {"nominal": {P5: 1}, "borrowing_limit": {P5: 2}},
            "waiting": 3,
        },
        {
            "name": "guest",
            "used": {"on-demand": {}, "spot": {}},
            "borrowed": {"on-demand": {}, "spot": {}},
            "quota": {"nominal": {}, "borrowing_limit": None},
            "waiting": 0,
        },
    ],
    "waiting": 3,
    "oldest_waiting_since": "2026-11-21T01:00:00Z",
    "account_limits": [
        {"instance_type": P5, "capacity_type": "on-demand", "limit": 3, "until": "2026-11-21T01:30:00Z"}
    ],
    "reranking": True,
}


def test_pools_says_why_instances_are_kept_warm(trainmaster: Trainmaster, api: FakeApi) -> None:
    kept = {"instance_type": P5, "instances": 1, "expires_at": "2026-11-21T02:00:00Z"}
    warm_pools = [kept | {"because": "kept for 3m00s more"}]
    script(api, "GET", "/pools", {"pools": [POOL | {"warm_pools": warm_pools}]})
    assert "; kept for 3m00s more" in trainmaster("pools").out


def test_pools_shows_capacity_teams_warm_pools_and_limits(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "GET", "/pools", {"pools": [POOL]})
    lines = trainmaster("pools").out.splitlines()
    assert lines[0].startswith("p5: 3 waiting, the oldest for ")
    assert lines[1:] == [
        "  4x ml.p5.48xlarge on-demand: 2 used, 1 warm, 1 free",
        "  1x ml.p5.48xlarge spot: 0 used, 0 warm, 1 free",
        (
            "  team vision: uses 2x ml.p5.48xlarge + 1x ml.p5.48xlarge spot,"
            " of its quota of 1x ml.p5.48xlarge, may borrow 2x ml.p5.48xlarge,"
            " borrows 1x ml.p5.48xlarge, 3 waiting"
        ),
        (
            "  team guest: uses nothing, of its quota of nothing, may borrow whatever is idle,"
            " borrows nothing, 0 waiting"
        ),
        "  warm: 1x ml.p5.48xlarge for 0s",
        "  its queue is being put into another order",
        "  the account allowed 3 on-demand ml.p5.48xlarge; the next try above it is due",
    ]


SHARED = {
    "because": "Jobs of team vision (50 GB) and team nlp (200 GB) \x1b[31mdiffer.",
    "todo": "Write 200.",
}


def test_pools_says_which_jobs_could_share_warm_pools_and_what_to_do(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    script(api, "GET", "/pools", {"pools": [POOL | {"sharing": [SHARED]}, POOL | {"sharing": []}]})
    ran = trainmaster("pools", "--sharing")
    assert api.received[-1].query == {"sharing": ["true"]}
    assert ran.out.splitlines() == [
        "p5: Jobs of team vision (50 GB) and team nlp (200 GB)  [31mdiffer.",
        "  Write 200.",
        "Estimates, by the last 16 starts and ends of each kind of jobs, kept warm as the policy says.",
    ]


def test_pools_says_that_no_jobs_could_share(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "GET", "/pools", {"pools": [POOL | {"sharing": []}]})
    assert trainmaster("pools", "--sharing").out.startswith("No jobs that you see would have started sooner")


def test_pools_prints_sharing_as_json(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "GET", "/pools", {"pools": [POOL | {"sharing": [SHARED]}]})
    shown = json.loads(trainmaster("pools", "--sharing", "--json").out)
    assert shown["pools"][0]["sharing"] == [SHARED]


@pytest.mark.parametrize("sharing", [None, [{}], [7], {"because": 1}])
def test_pools_names_an_answer_about_sharing_that_it_cannot_read(
    trainmaster: Trainmaster, api: FakeApi, sharing: Any
) -> None:
    script(api, "GET", "/pools", {"pools": [POOL | ({} if sharing is None else {"sharing": sharing})]})
    ran = trainmaster("pools", "--sharing")
    assert ran.code == 1
    assert "Traceback" not in ran.err


def test_ahead_and_sharing_are_two_questions(trainmaster: Trainmaster, api: FakeApi) -> None:
    ran = trainmaster("pools", "--ahead", "--sharing")
    assert (ran.code, api.received) == (2, [])
    assert "--ahead and --sharing exclude each other." in ran.err


def test_a_plane_without_pools_says_who_can_change_that(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "GET", "/pools", {"pools": []})
    assert trainmaster("pools").out == "No pools: an admin has to apply a policy.\n"


# ---- usage


def line(usd: float | None, **by: float) -> dict[str, Any]:
    return {"instance_hours": 2.5, "usd": usd, "by": by}


def test_usage_says_where_its_prices_are_of_another_region(trainmaster: Trainmaster, api: FakeApi) -> None:
    warning = {"field": "prices", "message": "lack ml.g5.xlarge", "hint": "write what eu-west-1 costs"}
    total = line(0, productive=0)
    document = {"team": "a", "month": "2026-11", "jobs": [], "total": total, "warnings": [warning]}
    script(api, "GET", "/usage", document)
    last = trainmaster("usage").out.splitlines()[-1]
    assert last.startswith("Warning: ")
    assert "lack ml.g5.xlarge" in last


def test_usage_shows_the_budget_each_job_and_what_was_taken(trainmaster: Trainmaster, api: FakeApi) -> None:
    taken = {
        "at": "2026-11-21T01:00:00Z",
        "preemptor": None,
        "preemptor_team": "speech",
        "victim": "job1",
        "victim_team": "vision",
        "instance_hours_lost": 0.25,
        "usd_lost": 2.5,
    }
    document = {
        "team": "vision",
        "month": "2026-11",
        "jobs": [
            {"name": "job1", "saved_usd": 12.5, **line(25, productive=20, startup=5, idle=0)},
            {"name": "job2", **line(None)},
        ],
        "total": {**line(None), "known_usd": 25},
        "running": {"jobs": 2, "usd": 84.1, "known_usd": 84.1},
        "preemptions": [taken],
        "budget": {"limit": 30, "spent": 25, "reserved": 3.5, "warning": True},
    }
    script(api, "GET", "/usage", document)
    ran = trainmaster("usage", "--team", "vision", "--month", "2026-11")
    assert ran.out.splitlines() == [
        "Team vision, 2026-11: at least 25.00 USD spent, 84.10 USD so far by 2 running jobs",
        "  ended: 2.5 instance-hours, cost unknown: a price is missing",
        (
            "  budget: 30.00 USD, of it 25.00 USD spent and 3.50 USD reserved for what runs;"
            " 80 % or more is spent"
        ),
        "  of it known: 25.00 USD",
        "  job1: 2.5 instance-hours, 25.00 USD",
        "    productive 20.00, start-up 5.00; spot saved 12.50 USD",
        "  job2: 2.5 instance-hours, cost unknown: a price is missing",
        "  2026-11-21T01:00:00Z a job of team speech preempted job1: 0.25 instance-hours lost",
    ]
    assert api.received[0].query == {"team": ["vision"], "month": ["2026-11"]}


def test_usage_holds_savings_of_warm_pools_against_their_cost(trainmaster: Trainmaster, api: FakeApi) -> None:
    by = {"productive": 90, "warm_pool": 4, "startup": 6}
    total = {"instance_hours": 2, "usd": 100, "saved_usd": 0, "warm_saved_usd": 9.5, "by": by}
    jobs = [{"name": "job1", **total}]
    script(api, "GET", "/usage", {"team": "a", "month": "2026-11", "jobs": jobs, "total": total})
    printed = trainmaster("usage").out
    assert "warm pools saved 9.50 USD of start-up, and cost 4.00 USD" in printed
    assert "warm starts saved 9.50 USD" in printed


def test_usage_compares_what_the_month_was_spent_on_in_60_columns(
    trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    by = {
        "productive": 19000,
        "unknown": 10000,
        "preemption": 100,
        "failures": 1250.5,
        "idle": 0,
        "warm_pool": 49.5,
        "startup": 600,
    }
    total = {"instance_hours": 1234.5, "usd": 31000, "saved_usd": 4200, "by": by}
    job = {"name": "llama-7", **total}
    document = {"team": "vision", "month": "2026-11", "jobs": [job], "total": total, "preemptions": []}
    script(api, "GET", "/usage", document)
    monkeypatch.setenv("COLUMNS", "60")
    printed = trainmaster("usage").out.splitlines()
    assert [line.rstrip() for line in printed] == [
        "Team vision, 2026-11: 31000.00 USD spent; 61 to 94 % useful",
        "(of 10000.00 USD no checkpoint was seen)",
        "  ended: 1234.5 instance-hours, 31000.00 USD",
        "  productive      19000.00 USD   61.3 %",
        "  unknown         10000.00 USD   32.3 %",
        "  preemption        100.00 USD    0.3 %",
        "  failures         1250.50 USD    4.0 %",
        "  idle                0.00 USD    0.0 %",
        "  warm pool          49.50 USD    0.2 %",
        "  start-up          600.00 USD    1.9 %",
        "  spot saved 4200.00 USD of the on-demand price",
        "  llama-7: 1234.5 instance-hours, 31000.00 USD",
        "    productive 19000.00, unknown 10000.00, preemption",
        "    100.00, failures 1250.50, warm pool 49.50, start-up",
        "    600.00; spot saved 4200.00 USD",
    ]


# ---- violations


def record(name: str, **fields: Any) -> dict[str, Any]:
    values = {
        "at": "2026-11-21T01:00:00.000Z",
        "training_job_name": name,
        "team": "vision",
        "role_arn": "arn:aws:iam::111122223333:role/vision-training",
        "unmanaged": True,
        "outcome": "stopped",
        "violations": [],
    }
    return values | fields


def found(mode: str) -> dict[str, str]:
    return {
        "rule": "vpc_required",
        "field": "VpcConfig",
        "message": "is missing",
        "hint": "add",
        "mode": mode,
    }


def test_violations_say_who_went_round_the_queue_and_what_rules_found(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    records = [
        record("stray", violations=[found("enforce")]),
        record("queued\x1b[2J", unmanaged=False, outcome="audited", violations=[found("audit")]),
    ]
    script(api, "GET", "/violations", {"month": "2026-11", "violations": records, "next_token": None})
    ran = trainmaster("violations", "--month", "2026-11")
    assert ran.out.splitlines() == [
        "2026-11: 2 jobs, 1 bypassed the queue, 1 came through it",
        "  1  vpc_required",
        "  1  vpc_required (audited)",
        "2026-11-21T01:00:00.000Z stray of team vision bypassed the queue: stopped",
        "  role: arn:aws:iam::111122223333:role/vision-training",
        "  vpc_required: VpcConfig: is missing; add",
        "2026-11-21T01:00:00.000Z queued [2J of team vision came through the queue: audited",
        "  role: arn:aws:iam::111122223333:role/vision-training",
        "  vpc_required (audited): VpcConfig: is missing; add",
    ]
    assert api.received[0].query == {"month": ["2026-11"]}


def test_rules_are_counted_the_most_frequent_first(trainmaster: Trainmaster, api: FakeApi) -> None:
    often = [found("enforce") | {"rule": "images"}] * 11
    records = [record("a", violations=[*often, found("audit")]), record("b", violations=[])]
    script(api, "GET", "/violations", {"month": "2026-11", "violations": records, "next_token": "t"})
    assert trainmaster("violations").out.splitlines()[:3] == [
        "2026-11 on this page: 2 jobs, 2 bypassed the queue, 0 came through it",
        "  11  images",
        "   1  vpc_required (audited)",
    ]


def test_a_month_without_violations_says_so(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "GET", "/violations", {"month": "2026-11", "violations": [], "next_token": None})
    assert trainmaster("violations") == Ran(0, "Nothing in 2026-11.\n", "")


def test_a_long_month_says_that_there_is_more_and_all_shows_it(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    pages = [
        {"month": "2026-11", "violations": [record("a")], "next_token": "t"},
        {"month": "2026-11", "violations": [record("b")], "next_token": None},
    ]
    script(api, "GET", "/violations", pages[0])
    first = trainmaster("violations")
    assert first.err == "There is more: --all shows the whole month.\n"
    api.forget()
    api.script("GET", "/violations", *(Scripted(document=page) for page in pages))
    whole = json.loads(trainmaster("violations", "--all", "--json").out)
    assert [one["training_job_name"] for one in whole["violations"]] == ["a", "b"]
    assert whole["next_token"] is None
    assert api.received[1].query == {"next_token": ["t"]}


@pytest.mark.parametrize(
    ("command", "path"), [("pools", "/pools"), ("usage", "/usage"), ("violations", "/violations")]
)
def test_an_answer_of_another_version_is_one_message(
    command: str, path: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    script(api, "GET", path, {"pools": [{"capacity": 3}], "total": 3, "violations": [3]})
    ran = trainmaster(command)
    assert (ran.code, ran.out) == (1, "")
    assert "as new as the deployed stack" in ran.err
