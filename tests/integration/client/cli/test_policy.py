"""``trainmaster policy`` against the fake API: what is sent, what is printed, what an exit code says."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.client.command import Ran, Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, problem

OLD = {
    "version": 1,
    "pools": [
        {"name": "p5", "capacity": {"ml.p5.48xlarge": 2}, "capacity_wait": "30m"},
        {"name": "g5", "capacity": {"ml.g5.12xlarge": 4}},
    ],
}
NEW = {
    "pools": [
        {"capacity": {"ml.p5.48xlarge": 1}, "capacity_wait": "30m", "name": "p5"},
        {"name": "g5", "capacity": {"ml.g5.12xlarge": 4}},
    ],
    "version": 1,
}
WARNING = {
    "field": "rules",
    "message": "kept, but this version does not act on it",
    "hint": "do not rely on it",
}


def answer(**keys: Any) -> Scripted:
    return Scripted(document={"revision": 4, "paused": False, "policy": OLD, "warnings": []} | keys)


def change(job: str | None, kind: str, message: str) -> dict[str, Any]:
    return {"job": job, "team": "vision", "pool": "p5", "change": kind, "message": message}


@pytest.fixture
def new_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("new.yaml").write_text(json.dumps(NEW))
    return "new.yaml"


def sent(api: FakeApi) -> list[tuple[str, str, dict[str, list[str]]]]:
    return [(one.method, one.path, one.query) for one in api.received]


def test_validate_sends_a_dry_run_and_says_so_when_all_is_well(
    trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    api.script("PUT", "/policy", answer(changes=[], warnings=[WARNING]))
    assert trainmaster("policy", "validate", new_policy) == Ran(
        0,
        "new.yaml is valid.\nWarning: rules: kept, but this version does not act on it; do not rely on it\n",
        "",
    )
    assert sent(api) == [("PUT", "/policy", {"dry_run": ["true"]})]
    assert json.loads(api.received[0].body) == NEW


@pytest.mark.parametrize("command", ["validate", "diff", "apply"])
def test_a_document_that_is_refused_is_exit_code_1_with_every_mistake(
    command: str, trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    wrong = [
        {
            "field": "pools[0].quotas.vison",
            "message": 'there is no team "vison"',
            "hint": "did you mean vision?",
        },
        {
            "field": "pools[0].capacity",
            "message": "must be a mapping, not 2",
            "hint": "write keys and values",
        },
    ]
    api.script("PUT", "/policy", problem(422, "Not allowed by the policy", "2 errors", *wrong))
    assert trainmaster("policy", command, new_policy) == Ran(
        1,
        "",
        "trainmaster: Not allowed by the policy (422): 2 errors\n"
        '  pools[0].quotas.vison (p5, line 1): there is no team "vison"; did you mean vision?\n'
        "  pools[0].capacity (p5, line 1): must be a mapping, not 2; write keys and values\n",
    )


def test_diff_shows_the_lines_that_change_and_what_becomes_of_jobs(
    trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    changes = [
        change("small", "starts", "1 ml.p5.48xlarge is free"),
        change("wide", "impossible", "needs 2 ml.p5.48xlarge, the pool has 1"),
        change(None, "stops-waiting", ""),
        change("odd", "vanishes", "as a newer server says"),
        change("late", "forbidden", "max_instances: asks for 3"),
        change("chained", "forbidden", "it starts, but would be refused") | {"judged_at": "submission"},
    ]
    api.script("PUT", "/policy", answer(changes=changes, warnings=[WARNING]))
    api.script("GET", "/policy", answer())
    ran = trainmaster("policy", "diff", new_policy)
    assert ran.out.splitlines() == [
        "--- revision 4",
        "+++ new.yaml",
        "@@ -1,7 +1,7 @@",
        " pools:",
        " - name: p5",
        "   capacity:",
        "-    ml.p5.48xlarge: 2",
        "+    ml.p5.48xlarge: 1",
        "   capacity_wait: 30m",
        " - name: g5",
        "   capacity:",
        "",
        "odd (team vision, pool p5) vanishes: as a newer server says",
        "late (team vision, pool p5) would be refused when it is due to start: max_instances: asks for 3",
        "chained (team vision, pool p5) stays in the queue: it starts, but would be refused",
        "wide (team vision, pool p5) can never start: needs 2 ml.p5.48xlarge, the pool has 1",
        "a job (team vision, pool p5) would wait no longer",
        "small (team vision, pool p5) would start: 1 ml.p5.48xlarge is free",
        "Warning: rules: kept, but this version does not act on it; do not rely on it",
    ]
    assert (ran.code, ran.err) == (0, "")
    assert sent(api) == [("PUT", "/policy", {"dry_run": ["true"]}), ("GET", "/policy", {})]


def test_diff_says_when_nothing_would_change(trainmaster: Trainmaster, api: FakeApi, new_policy: str) -> None:
    api.script("PUT", "/policy", answer(changes=[]))
    api.script("GET", "/policy", answer(policy=NEW))
    assert trainmaster("policy", "diff", new_policy).out.splitlines() == [
        "new.yaml is the same as revision 4.",
        "",
        "No job would start, stop or wait for it.",
    ]


def test_diff_says_that_it_looked_at_the_first_jobs_only(
    trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    api.script("PUT", "/policy", answer(changes=[], truncated=True))
    api.script("GET", "/policy", answer(policy=NEW))
    last = trainmaster("policy", "diff", new_policy).out.splitlines()[-1]
    assert last == "More jobs wait: only the first that ask for the same thing were looked at."


def test_diff_as_json_is_what_the_dry_run_said(
    trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    tried = answer(changes=[change("small", "starts", "1 is free")])
    api.script("PUT", "/policy", tried)
    assert json.loads(trainmaster("policy", "diff", new_policy, "--json").out) == tried.document


def test_an_earlier_revision_is_shown_without_the_pause_of_today(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/policy", answer(revision=2, paused=True))
    ran = trainmaster("policy", "show", "--revision", "2")
    assert ran.out.splitlines()[:3] == ["# revision 2", "version: 1", "pools:"]
    assert sent(api) == [("GET", "/policy", {"revision": ["2"]})]


def test_rollback_puts_the_document_of_that_revision(trainmaster: Trainmaster, api: FakeApi) -> None:
    api.script("GET", "/policy", answer(revision=2))
    api.script("PUT", "/policy", answer(revision=5))
    assert trainmaster("policy", "rollback", "2") == Ran(
        0, "Policy revision 5 is in force: the document of revision 2.\n", ""
    )
    assert sent(api) == [("GET", "/policy", {"revision": ["2"]}), ("PUT", "/policy", {})]
    assert json.loads(api.received[1].body) == OLD


def test_a_revision_that_never_was_is_exit_code_4_and_nothing_is_put(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/policy", problem(404, "Not found", "there is no revision 9"))
    ran = trainmaster("policy", "rollback", "9")
    assert (ran.code, ran.out) == (4, "")
    assert "there is no revision 9" in ran.err
    assert len(api.received) == 1


def test_a_revision_without_a_document_is_not_put(trainmaster: Trainmaster, api: FakeApi) -> None:
    api.script("GET", "/policy", answer(policy=None))
    ran = trainmaster("policy", "rollback", "3")
    assert ran.code == 3
    assert "no document in revision 3" in ran.err
    assert len(api.received) == 1


TEXT = """\
# two clusters, see the wiki
version: 1
pools:
  - {name: p5, capacity: {ml.p5.48xlarge: 2}, capacity_wait: 30m}   # the large one
  - {name: g5, capacity: {ml.g5.12xlarge: 4}}
"""


def test_apply_sends_the_text_too_and_show_prints_it_as_it_was_sent(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(TEXT)
    api.script("PUT", "/policy", answer())
    assert trainmaster("policy", "apply", str(file)).out == "Policy revision 4 is in force.\n"
    assert json.loads(api.received[0].body) == {"policy": OLD, "text": TEXT}
    api.script("GET", "/policy", answer(text=TEXT))
    assert trainmaster("policy", "show").out == f"# revision 4\n{TEXT}"


def test_what_show_printed_is_applied_without_its_first_line(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"# revision 4, paused: nothing starts\n{TEXT}")
    api.script("PUT", "/policy", answer())
    trainmaster("policy", "apply", str(file))
    assert json.loads(api.received[0].body)["text"] == TEXT


@pytest.mark.parametrize("text", ["version: 1\n", "pools: [\n", "version: 1\x1b[2J\n", "[]"])
def test_a_text_that_does_not_say_the_document_is_not_printed(
    text: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/policy", answer(text=text))
    shown = trainmaster("policy", "show").out
    assert shown.splitlines()[1].startswith("# The text that was kept with it says something else")
    assert yaml.safe_load(shown) == OLD


def test_an_api_that_knows_no_texts_is_sent_the_document_alone(
    trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    unknown = [
        {"field": key, "message": "unknown key", "hint": "known keys: ..."} for key in ("policy", "text")
    ]
    api.script("PUT", "/policy", problem(422, "Not allowed", "2 errors", *unknown), answer(revision=5))
    assert trainmaster("policy", "apply", new_policy).out == "Policy revision 5 is in force.\n"
    assert json.loads(api.received[1].body) == NEW


def test_a_file_too_large_to_be_kept_is_applied_all_the_same(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(TEXT + "#" * 100 * 1024)
    api.script("PUT", "/policy", answer())
    assert "too large to be kept" in trainmaster("policy", "apply", str(file)).out
    assert json.loads(api.received[0].body) == OLD


def test_rollback_brings_the_text_back_too(trainmaster: Trainmaster, api: FakeApi) -> None:
    api.script("GET", "/policy", answer(revision=2, text=TEXT))
    api.script("PUT", "/policy", answer(revision=5))
    trainmaster("policy", "rollback", "2")
    assert json.loads(api.received[1].body) == {"policy": OLD, "text": TEXT}


@pytest.mark.parametrize(
    ("command", "paused", "said"),
    [
        ("pause", True, "Paused: no job starts or is preempted; running jobs continue.\n"),
        ("resume", False, "Resumed: jobs start in queue order.\n"),
    ],
)
def test_the_pause_switch(
    command: str,
    said: str,
    *,
    paused: bool,
    trainmaster: Trainmaster,
    api: FakeApi,
) -> None:
    api.script("PUT", "/policy/paused", answer(paused=paused))
    assert trainmaster("policy", command) == Ran(0, said, "")
    assert json.loads(api.received[0].body) == {"paused": paused}


# ---- diff with a replay


def ago(hours: float) -> str:
    return (datetime.now(UTC) - timedelta(hours=hours)).isoformat()


def past_job(name: str, *, hours: float, end: str = "completed") -> dict[str, Any]:
    """Submitted so long ago; trained for an hour at once."""
    attempt = {"started_at": ago(hours), "training_since": ago(hours), "ended_at": ago(hours - 1)}
    return {
        "name": name,
        "team": "vision",
        "submitted_by": "ada",
        "pool": "p5",
        "instances": {"ml.p5.48xlarge": 1},
        "capacity_type": "on-demand",
        "priority": 0,
        "submitted_at": ago(hours),
        "max_runtime_seconds": 86_400,
        "saves_checkpoints": False,
        "attempts": [{**attempt, "end": end, "lost_seconds": 0}],
        "end": end,
    }


def has_history(api: FakeApi, *jobs: dict[str, Any], since_hours: float | None) -> None:
    api.script("PUT", "/policy", answer(policy=NEW, changes=[]))
    api.script("GET", "/policy", answer())
    since = None if since_hours is None else ago(since_hours)
    api.script("GET", "/pools/history", Scripted(document={"step": 60, "points": [], "since": since}))
    lines = "".join(json.dumps(one) + "\n" for one in jobs).encode()
    kind = {"content-type": "application/x-ndjson"}
    api.script("GET", "/history/export", Scripted(raw=lines, headers=kind))


def test_diff_replays_the_accounts_jobs_under_both_policies(
    trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    has_history(api, past_job("first", hours=5), past_job("second", hours=5), since_hours=100)
    ran = trainmaster("policy", "diff", new_policy, "--replay", "1d", "--html", "replay.html")
    lines = ran.out.splitlines()
    assert "-    ml.p5.48xlarge: 2" in lines, "the difference comes first, as without a replay"
    (waits,) = [line for line in lines if line.startswith("wait, 9 of 10 jobs within")]
    assert "-> 60m" in waits, "on one instance the second waits for the first"
    assert "0 jobs wait shorter, 1 longer, 1 as long (within a minute)" in lines
    assert lines[-1] == "Open replay.html in a browser."
    page = Path("replay.html").read_text()
    assert "<h1" in page
    assert "revision 4" in page


def test_diff_as_json_has_the_summary_of_the_replay_too(
    trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    has_history(api, past_job("first", hours=5), since_hours=100)
    found = json.loads(trainmaster("policy", "diff", new_policy, "--replay", "1d", "--json").out)
    assert found["revision"] == 4
    assert "revision 4 -> new.yaml" in found["replay"]["summary"][0]


@pytest.mark.parametrize(
    ("since_hours", "said"),
    [
        pytest.param(None, "This stack has no history yet: nothing has started in any pool.", id="empty"),
        pytest.param(
            50.5,
            "2d02h ago; --replay asks for 14d00h. Give what there is: --replay 50h.",
            id="shorter than asked",
        ),
    ],
)
def test_a_history_that_is_empty_or_shorter_than_asked_is_refused_and_its_length_said(
    since_hours: float | None, said: str, trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    has_history(api, past_job("first", hours=5), since_hours=since_hours)
    ran = trainmaster("policy", "diff", new_policy, "--replay", "14d")
    assert ran.code == 2
    assert said in " ".join(ran.err.split())


def test_who_is_no_admin_is_told_who_may_replay(
    trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    has_history(api, since_hours=100)
    refused = problem(403, "Forbidden", "GET /history/export is for admins.")
    api.script("GET", "/history/export", refused)
    ran = trainmaster("policy", "diff", new_policy, "--replay", "1d")
    assert ran.code == 1
    assert "Only admins read the history of all teams." in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--html", "x.html"], "--html needs --replay. Give the time to replay: --replay 14d."),
        (["--replay", "soon"], "--replay: 'soon' is not a valid time;"),
    ],
)
def test_what_is_wrong_with_a_replays_options_is_said_before_anything_is_asked(
    arguments: list[str], said: str, trainmaster: Trainmaster, api: FakeApi, new_policy: str
) -> None:
    ran = trainmaster("policy", "diff", new_policy, *arguments)
    assert (ran.code, api.received) == (2, [])
    assert said in " ".join(ran.err.split())
