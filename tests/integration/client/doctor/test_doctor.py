"""``trainmaster doctor`` on set-ups that are broken, each in one way: its own remedy, and nobody else's."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.doctor.checks import STEPS

from tests.integration.client.command import Ran, Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, problem
from tests.integration.client.test_bad_answers import gateway, server_that_hangs_up

NOWHERE = "http://127.0.0.1:1"
"""AWS is not reached: what only AWS knows is skipped."""
OURS = {"trainmaster-version": "0.1.0"}
HTML = {"content-type": "text/html"}
PROBLEM = {"content-type": "application/problem+json"}
Setenv = Callable[[str, str], None]


@pytest.fixture
def doctor(
    trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[], tuple[Ran, dict[str, Any]]]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)

    def run() -> tuple[Ran, dict[str, Any]]:
        file = tmp_path / "doctor.json"
        ran = trainmaster("doctor", "--json", str(file))
        return ran, json.loads(file.read_text(encoding="utf-8"))

    return run


Doctor = Callable[[], tuple[Ran, dict[str, Any]]]


PRICED = {"prices": {"ml.p5.48xlarge": 70}}


def healthy(api: FakeApi, *, version: str = "0.1.0", **pools: Any) -> None:
    own = {"trainmaster-version": version}
    pool = {"name": "p5", "capacity": {"ml.p5.48xlarge": 2}, "spot_capacity": {}, **pools}
    api.script("GET", "/pools", Scripted(document={"pools": [pool]}, headers=own))
    api.script("GET", "/policy", Scripted(document={"revision": 1, "paused": False, "policy": PRICED}))
    api.script("GET", "/usage", Scripted(document={"team": "vision"}))
    refusal = problem(400, "Invalid request", "2 problems")
    api.script("POST", "/add-job", Scripted(status=400, document=refusal.document, headers=own))


def troubles(report: dict[str, Any]) -> dict[str, str]:
    """Check -> trouble of everything that did not go well."""
    return {check: remedy["trouble"] for check, remedy in report["facts"]["remedies"].items()}


AWAY = {"parameter": "parameter-missing"}
"""What nobody can know with AWS out of reach, and is worth a warning."""


def test_a_healthy_set_up_is_ok_and_what_cannot_be_known_is_skipped_with_its_reason(
    doctor: Doctor, api: FakeApi
) -> None:
    healthy(api)
    ran, report = doctor()
    assert (ran.code, ran.err, report["schema"], report["ok"]) == (0, "", "trainmaster.report/1", True)
    assert [check["id"] for check in report["checks"]] == [step.id for step in STEPS]
    assert troubles(report) == AWAY
    skipped = {check["id"] for check in report["checks"] if check["ok"] is None}
    assert skipped == {
        "identity",
        "local-gateway",
        "bought-plans",
        "quotas",
        "concurrency",
        "gpu-metrics",
        "mail",
        "logs",
        "parameter",
        "training-roles",
        "volume-keys",
        "checkpoint-keys",
        "table-key",
        "direct-starts",
        "operator-alarms",
    }
    assert all(check["skipped"] for check in report["checks"] if check["ok"] is None)
    assert "ok    team             team vision, admin" in ran.out.splitlines()
    assert [record["call"] for record in report["facts"]["answers"]] == [
        "GET /pools, not signed",
        "GET /pools",
        "GET /policy",
        "GET /usage",
        "POST /add-job?dry_run=true",
        "GET /jobs?state=running&limit=10",
    ]


@pytest.mark.long
def test_nothing_is_stored_by_looking(doctor: Doctor, api: FakeApi) -> None:
    healthy(api)
    doctor()
    (submission,) = [one for one in api.received if one.method != "GET"]
    assert (submission.path, submission.query, submission.body) == ("/add-job", {"dry_run": ["true"]}, b"{}")


ENVIRONMENTS = [
    pytest.param({"TRAINMASTER_API_URL": ""}, "api-url", "no-api-url", id="no URL anywhere"),
    pytest.param({"TRAINMASTER_API_URL": "prod"}, "url-form", "bad-api-url", id="no URL"),
    pytest.param(
        {"TRAINMASTER_API_URL": "http://api.example.com/prod"}, "url-form", "plain-http", id="plain http"
    ),
    pytest.param(
        {"TRAINMASTER_API_URL": "https://a-vpce-1.execute-api.us-east-1.amazonaws.com"},
        "url-form",
        "no-stage",
        id="URL without stage",
    ),
    pytest.param(
        {"TRAINMASTER_API_URL": "https://api.invalid/prod"}, "host", "host-unknown", id="wrong host"
    ),
    pytest.param(
        {"TRAINMASTER_API_URL": "http://127.0.0.1:1/prod"},
        "connection",
        "nothing-listens",
        id="nothing listens",
    ),
    pytest.param({"AWS_DEFAULT_REGION": ""}, "region", "no-region", id="no region"),
    pytest.param({"AWS_PROFILE": "nobody"}, "configuration", "credentials-unreadable", id="no such profile"),
    pytest.param(
        {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
        "credentials",
        "no-credentials",
        id="no credentials",
    ),
    pytest.param({"AWS_SECRET_ACCESS_KEY": "wrong"}, "access", "wrong-signature", id="STS is not reached"),
]


@pytest.mark.parametrize(("environment", "check", "trouble"), ENVIRONMENTS)
def test_what_is_wrong_here_is_found_where_it_is(
    environment: dict[str, str],
    check: str,
    trouble: str,
    doctor: Doctor,
    api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    healthy(api)
    for name, value in environment.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    ran, report = doctor()
    assert ran.code == 1
    assert {name: one for name, one in troubles(report).items() if name != "parameter"} == {check: trouble}
    passed = [one["id"] for one in report["checks"] if one["ok"]]
    assert check not in passed
    assert "team" not in passed  # what builds on it is skipped, not passed


def own(status: int, detail: str) -> Scripted:
    return Scripted(status=status, document=problem(status, "No", detail).document, headers=OURS | PROBLEM)


def answers(*pairs: Any) -> Any:
    return pytest.param(*pairs[1:], id=pairs[0])


INVOKE = "User: u is not authorized to perform: execute-api:Invoke on resource: r"


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "check", "trouble"),
    [
        answers("expired token", gateway("ExpiredTokenException", "x"), "access", "expired-credentials"),
        answers("unknown key", gateway("UnrecognizedClientException", "x"), "access", "unknown-key"),
        answers("wrong stage", gateway("MissingAuthenticationTokenException", "x"), "access", "wrong-stage"),
        answers("wrong endpoint", gateway("ForbiddenException", "Forbidden"), "access", "wrong-endpoint"),
        answers("deny", gateway("AccessDeniedException", f"{INVOKE} explicit deny"), "access", "denied"),
        answers("no caller", gateway("AccessDeniedException", INVOKE), "access", "not-a-caller"),
        answers("firewall", gateway("", "Forbidden"), "access", "forbidden"),
        answers("no team", own(403, "no team of the policy lists this caller"), "team", "no-team"),
        answers("API fails", own(500, "x"), "access", "api-failed"),
        answers("throttled", gateway("TooManyRequestsException", "x", 429), "access", "too-many-requests"),
        answers("a web page", Scripted(raw=b"<html>"), "access", "not-the-api"),
        answers("another API", Scripted(document={"hello": "world"}), "access", "not-the-api"),
    ],
)
def test_what_the_other_side_says_is_told_apart(
    answer: Scripted, check: str, trouble: str, doctor: Doctor, api: FakeApi
) -> None:
    healthy(api)
    api.script("GET", "/pools", answer)
    ran, report = doctor()
    assert ran.code == 1
    assert troubles(report) == AWAY | {check: trouble}
    assert "Traceback" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("unsigned", "trouble"),
    [
        answers("a web page", Scripted(raw=b"<html>", headers=HTML), "not-the-api"),
        answers("a redirect", Scripted(status=302, headers={"location": "https://x/"}), "not-the-api"),
        answers("another service", Scripted(status=404, document={}, headers=HTML), "not-the-api"),
    ],
)
def test_another_server_is_known_before_anything_is_signed(
    unsigned: Scripted, trouble: str, doctor: Doctor, api: FakeApi
) -> None:
    api.refusal = unsigned
    ran, report = doctor()
    assert (ran.code, troubles(report)) == (1, AWAY | {"gateway": trouble})


def test_a_clock_that_is_twenty_minutes_off_is_the_cause_whatever_the_signature(
    doctor: Doctor, api: FakeApi
) -> None:
    api.refusal = replace(gateway("MissingAuthenticationTokenException", "x"), minutes_ahead=-20)
    ran, report = doctor()
    assert (ran.code, troubles(report)) == (1, {"clock": "clock"})
    assert "FAIL  clock            20 minutes ahead of the API's" in ran.out.splitlines()


def test_https_to_a_port_without_tls(doctor: Doctor, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMASTER_API_URL", api.url.replace("http:", "https:"))
    assert troubles(doctor()[1]) == {"connection": "tls"}


def test_a_server_that_hangs_up(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    with server_that_hangs_up() as port:
        monkeypatch.setenv("TRAINMASTER_API_URL", f"http://127.0.0.1:{port}/prod")
        assert troubles(doctor()[1]) == {"connection": "no-answer"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("0.1.7", {}),
        ("0.2.0", {"version": "old-client"}),
        ("1.0.0", {"version": "old-client"}),
        ("0.0.9", {"version": "old-stack"}),
        ("", {"version": "old-stack"}),
    ],
)
def test_client_and_stack_are_of_one_version(
    version: str, found: dict[str, str], doctor: Doctor, api: FakeApi
) -> None:
    healthy(api, version=version)
    ran, report = doctor()
    assert (ran.code, troubles(report)) == (int(bool(found)), AWAY | found)


def test_a_pause_fails_and_a_limit_that_was_met_is_a_warning(doctor: Doctor, api: FakeApi) -> None:
    limit = {"instance_type": "ml.p5.48xlarge", "capacity_type": "on-demand", "limit": 1, "until": "x"}
    healthy(api, account_limits=[limit])
    api.script("GET", "/policy", Scripted(document={"revision": 1, "paused": True, "policy": PRICED}))
    ran, report = doctor()
    assert ran.code == 1
    assert troubles(report) == AWAY | {"paused": "paused", "account-limits": "account-limit"}
    told = "warn  account-limits   AWS grants at most 1 ml.p5.48xlarge on demand at present"
    assert told in ran.out.splitlines()


def test_starts_that_pause_are_a_warning_with_aws_s_words(doctor: Doctor, api: FakeApi) -> None:
    pause = {
        "role_arn": "arn:aws:iam::1:role/train",
        "since": "2026-11-02T11:51:00.000Z",
        "code": "AccessDeniedException",
        "message": "AccessDeniedException: no iam:PassRole",
    }
    healthy(api, start_pauses=[pause, {**pause, "role_arn": None, "message": None}])
    ran, report = doctor()
    assert troubles(report) == AWAY | {"start-pauses": "starts-paused"}
    (line,) = [one for one in ran.out.splitlines() if one.startswith("warn  start-pauses")]
    assert "starts with arn:aws:iam::1:role/train in pool" in line
    assert "paused since 2026-11-02T11:51:00.000Z, AWS says AccessDeniedException: no iam:PassRole" in line
    assert "starts with a role of another team" in line


def test_rows_set_aside_and_a_policy_that_is_not_understood_are_named_to_admins(
    doctor: Doctor, api: FakeApi
) -> None:
    healthy(api)
    pools = {"pools": [{"name": "p5", "capacity": {}}], "set_aside": 1}
    api.script("GET", "/pools", Scripted(document=pools, headers={"trainmaster-version": "0.1.0"}))
    warning = {"field": "policy", "message": "revision 7 is not understood by this version", "hint": "put"}
    policy = {"revision": 7, "paused": False, "policy": PRICED, "warnings": [warning]}
    api.script("GET", "/policy", Scripted(document=policy))
    broken = {"key": "J#old/job", "error": "ValueError: 'archived' is not a valid JobState"}
    api.script("GET", "/repair", Scripted(document={"state": "done", "set_aside": [broken]}))
    ran, report = doctor()
    assert ran.code == 1
    found = troubles(report)
    assert (found["policy"], found["rows"]) == ("policy-not-understood", "rows-set-aside")
    assert "J#old/job: ValueError: 'archived' is not a valid JobState" in ran.out


def test_a_policy_that_leans_on_earlier_defaults_is_warned_of_with_what_changes(
    doctor: Doctor, api: FakeApi
) -> None:
    healthy(api)
    warning = {
        "field": "teams[0].roles",
        "message": "is not written: any",
        "hint": "list",
        "rule": "defaults",
    }
    policy = {"revision": 7, "paused": False, "policy": PRICED, "warnings": [warning]}
    api.script("GET", "/policy", Scripted(document=policy))
    ran, report = doctor()
    assert ran.code == 0
    assert "teams[0].roles is not written: any" in ran.out
    assert report["facts"]["remedies"]["policy"]["trouble"] == "outdated-defaults"


def test_a_report_that_cannot_be_written_is_wrong_usage(
    trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    ran = trainmaster("doctor", "--json", "/proc/none/doctor.json")
    assert (ran.code, ran.err) == (
        2,
        "trainmaster: /proc/none/doctor.json: No such file or directory. Name another with --json.\n",
    )
    assert ran.out.splitlines()[-1].startswith("doctor: NOT ok, ")
    assert ran.out.splitlines()[-1].endswith(", without a report")


@pytest.mark.parametrize(
    ("version", "code", "verdict"),
    [("0.1.0", 0, "doctor: ok, 1 warning"), ("0.2.0", 1, "doctor: NOT ok, 1 failure, 1 warning")],
)
def test_C20_the_last_line_counts_the_warnings_and_no_file_is_written(
    trainmaster: Trainmaster,
    api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    version: str,
    code: int,
    verdict: str,
) -> None:
    healthy(api, version=version)
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    folder = tmp_path / "callers"
    folder.mkdir()
    monkeypatch.chdir(folder)
    ran = trainmaster("doctor")
    assert (ran.code, ran.err, ran.out.splitlines()[-1]) == (code, "", verdict)
    assert list(folder.iterdir()) == []


def test_C20_what_aws_grants_is_said_in_words_with_the_next_try(
    trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = {
        "instance_type": "ml.g5.xlarge",
        "capacity_type": "on-demand",
        "limit": 0,
        "until": "2026-11-27T03:12:00.000Z",
    }
    healthy(api, account_limits=[limit])
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    ran = trainmaster("doctor")
    said = "AWS grants no ml.g5.xlarge on demand at present; one job tries again from 03:12 UTC on"
    assert f"warn  account-limits   {said}" in ran.out.splitlines()
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "doctor: ok, 2 warnings")


def test_C20_strict_ends_with_1_for_a_warning_and_the_report_stays_ok(
    trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    healthy(api)
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    file = tmp_path / "doctor.json"
    ran = trainmaster("doctor", "--strict", "--json", str(file))
    assert ran.code == 1
    assert ran.out.splitlines()[-1] == f"doctor: ok, 1 warning, report in {file}"
    assert json.loads(file.read_text(encoding="utf-8"))["ok"] is True


def test_json_without_a_path_is_printed_and_nothing_else(
    trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy(api)
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)
    monkeypatch.chdir("/proc")  # no file could be written
    ran = trainmaster("doctor", "--json")
    report = json.loads(ran.out)
    assert (report["name"], report["ok"], ran.code) == ("doctor", True, 0)
    assert ran.err == ""


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("AWS_DEFAULT_REGION", "eu central", "doesn't match a supported format"),
        ("AWS_ENDPOINT_URL", "nonsense", "Invalid endpoint: nonsense"),
    ],
)
def test_a_region_or_a_place_of_aws_that_is_none_is_told_with_every_look(
    doctor: Doctor, api: FakeApi, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    healthy(api)
    monkeypatch.setenv(variable, value)
    _, report = doctor()
    assert len(report["checks"]) == len(STEPS)
    (identity,) = [check for check in report["checks"] if check["id"] == "identity"]
    assert said in identity["skipped"]


@pytest.mark.long
def test_in_a_narrow_terminal_every_line_fits(
    doctor: Doctor, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    ran, _ = doctor()
    lines = ran.out.splitlines()
    assert max(len(line) for line in lines) <= 60
    looks = ran.out.partition("doctor: NOT ok")[0].splitlines()
    assert all(line.startswith((" ", "ok  ", "FAIL", "warn", "skip")) for line in looks)


def test_a_gateway_that_programs_are_told_of_must_answer(
    doctor: Doctor, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy(api)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", f"{NOWHERE}/a-token")
    _, report = doctor()
    assert troubles(report)["local-gateway"] == "gateway-silent"
    assert "a-token" not in json.dumps(report)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER", NOWHERE)
    assert "local-gateway" not in troubles(doctor()[1])
