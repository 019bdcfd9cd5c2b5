"""The Policy page's replays: of a reading dashboard too, one at a time, each in a process of its own."""

import base64
import json
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from trainmaster_client.dashboard import policy_replays
from trainmaster_client.dashboard.policy_replays import PolicyReplays, ReplayState, unpacked
from trainmaster_client.gateway.json_protocol import CallRefusedError

from tests.integration.client.gateway_world import GatewayWorld, running_gateway
from tests.integration.client.test_gateway_pages import Page, asked, opened

FIRST, SECOND = "1" * 32, "2" * 32
POLICY = "pools:\n  - name: p5\n    capacity: {ml.p5.48xlarge: 2}\n"
RESULT = {"summary": ["jobs wait 12m less"], "tables": [], "notes": [], "not_in_model": []}
SAYS = (
    "import json, sys; asked = json.loads(sys.stdin.readline()); "
    "print(json.dumps({'doing': 'Replaying', 'share': 0.5}), flush=True); "
)
"""What each of these programs begins with."""
ANSWERS = f"{SAYS} print(json.dumps({{'result': {{**{RESULT!r}, 'asked': asked}}, 'report': '<p>all</p>'}}))"
REFUSES = f"{SAYS} print(json.dumps({{'error': 'Only admins may read the history of all teams.'}}))"
DIES = f"{SAYS} sys.exit(3)"
UNTIL_THE_GATEWAY_ENDS = f"{SAYS} sys.stdin.read()"
PATIENCE_SECONDS = 20


def replays_of(program: str) -> PolicyReplays:
    return PolicyReplays(api_url="http://127.0.0.1:1", program=(sys.executable, "-c", program))


def packed(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.compress(text.encode())).decode()


def until(look: Callable[[], dict[str, Any]], accept: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    waiting = threading.Event()
    for _ in range(PATIENCE_SECONDS * 100):
        found = look()
        if accept(found):
            return found
        waiting.wait(0.01)
    raise AssertionError(f"still: {found}")


def is_over(replay: dict[str, Any]) -> bool:
    return ReplayState(replay["state"]) is not ReplayState.RUNNING


def test_what_the_process_comes_to_is_kept_with_its_report() -> None:
    replays = replays_of(ANSWERS)
    replays.start(FIRST, {"text": POLICY, "days": 14})
    over = until(lambda: replays.look(FIRST), is_over)
    assert (over["state"], over["error"], over["share"], over["has_report"]) == ("done", "", 1.0, True)
    assert over["result"] == {**RESULT, "asked": {"text": POLICY, "days": 14}}
    assert replays.report(FIRST) == "<p>all</p>"


def test_while_it_runs_it_says_how_far_it_is_and_no_other_one_starts() -> None:
    replays = replays_of(UNTIL_THE_GATEWAY_ENDS)
    first = replays.start(FIRST, {})
    assert (first["state"], first["share"]) == ("running", None)
    assert until(lambda: replays.look(FIRST), lambda one: one["share"] == 0.5)["doing"] == "Replaying"
    assert replays.start(FIRST, {})["id"] == FIRST
    with pytest.raises(CallRefusedError, match="A replay runs already") as refused:
        replays.start(SECOND, {})
    assert refused.value.status == 409
    with pytest.raises(CallRefusedError, match="no report yet"):
        replays.report(FIRST)
    assert replays.cancel(FIRST)["state"] == "cancelled"
    assert replays.start(SECOND, {})["state"] == "running"
    with pytest.raises(CallRefusedError, match="only the newest one is kept"):
        replays.look(FIRST)
    replays.cancel(SECOND)


@pytest.mark.parametrize(
    ("program", "error"),
    [
        pytest.param(REFUSES, "Only admins may read the history of all teams.", id="it says what is wrong"),
        pytest.param(
            DIES, "The replay's process ended with code 3 before it came to a result.", id="it says nothing"
        ),
    ],
)
def test_a_replay_that_fails_says_why(program: str, error: str) -> None:
    replays = replays_of(program)
    replays.start(FIRST, {})
    over = until(lambda: replays.look(FIRST), is_over)
    assert (over["state"], over["error"], over["has_report"]) == ("failed", error, False)


def test_a_policy_travels_in_a_header_and_one_that_is_too_long_or_torn_is_refused() -> None:
    assert unpacked(packed(POLICY)) == POLICY
    most = "x" * policy_replays.LARGEST_TEXT_BYTES
    assert unpacked(packed(most)) == most
    with pytest.raises(CallRefusedError, match="more than 100 KiB"):
        unpacked(packed(most + "x"))
    for torn in ("", packed(POLICY)[:-8], "bm90IGRlZmxhdGVk", "%"):
        with pytest.raises(CallRefusedError):
            unpacked(torn)


# ---- by the gateway


@pytest.fixture(scope="module")
def reading() -> Iterator[GatewayWorld]:
    with (
        patch.object(policy_replays, "PROGRAM", (sys.executable, "-c", ANSWERS)),
        running_gateway() as world,
    ):
        yield world


def begun(world: GatewayWorld, replay_id: str, **headers: str) -> Page:
    return asked(world, f"/ui/data/replays/{replay_id}", **headers)


def test_a_dashboard_that_only_reads_replays_too(reading: GatewayWorld) -> None:
    session = opened(reading).session
    started = begun(
        reading,
        f"{FIRST}?now=2026-11-24T07:00:00Z",
        trainmaster_session=session,
        trainmaster_replay="start",
        trainmaster_policy=packed(POLICY),
    )
    assert started.status == 200
    over = until(lambda: json.loads(begun(reading, FIRST, trainmaster_session=session).body), is_over)
    until_the_page_s_now = "2026-11-24T07:00:00+00:00"
    assert over["result"]["asked"] == {"text": POLICY, "days": 14, "until": until_the_page_s_now}
    report = asked(reading, f"/ui/data/replays/{FIRST}/report", trainmaster_session=session)
    assert (report.status, report.body) == (200, b"<p>all</p>")
    assert report.headers["content-security-policy"].split("; ")[0] == "default-src 'none'"
    assert report.headers["content-security-policy"].endswith("; sandbox")


def test_T3_a_report_opens_by_a_link_with_a_key_for_it_alone(reading: GatewayWorld) -> None:
    session = opened(reading).session
    begun(
        reading,
        FIRST,
        trainmaster_session=session,
        trainmaster_replay="start",
        trainmaster_policy=packed(POLICY),
    )
    over = until(lambda: json.loads(begun(reading, FIRST, trainmaster_session=session).body), is_over)
    link = f"/ui/data/replays/{FIRST}/report?key={over['report_key']}"
    assert asked(reading, link).body == b"<p>all</p>"
    assert asked(reading, link, "POST").status == 403
    assert asked(reading, f"{link}x").status == 403
    assert asked(reading, f"/ui/data/replays/{SECOND}/report?key={over['report_key']}").status == 403
    assert asked(reading, "/ui/data/session", trainmaster_session=over["report_key"]).status == 403
    assert session not in json.dumps(over)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"trainmaster_replay": "start"}, 403, id="without the session"),
        pytest.param(
            {"trainmaster_session": "mine", "sec_fetch_mode": "navigate"},
            404,
            id="a link, which sends no header",
        ),
        pytest.param(
            {"trainmaster_session": "mine", "trainmaster_replay": "start", "sec_fetch_site": "cross-site"},
            403,
            id="another page",
        ),
        pytest.param(
            {"trainmaster_session": "mine", "trainmaster_replay": "start", "origin": "http://127.0.0.1:1"},
            403,
            id="a page of another port",
        ),
        pytest.param(
            {"trainmaster_session": "mine", "trainmaster_replay": "start"}, 400, id="without a policy"
        ),
    ],
)
def test_what_may_not_start_a_replay_starts_none(
    headers: dict[str, str], status: int, reading: GatewayWorld
) -> None:
    given = dict(headers)
    if "trainmaster_session" in given:
        given["trainmaster_session"] = opened(reading).session
    assert begun(reading, SECOND, **given).status == status
    assert begun(reading, SECOND, trainmaster_session=opened(reading).session).status == 404


def test_a_replay_is_no_post(reading: GatewayWorld) -> None:
    session = opened(reading).session
    answer = asked(
        reading,
        f"/ui/data/replays/{SECOND}",
        "POST",
        trainmaster_session=session,
        trainmaster_replay="start",
    )
    assert answer.status == 403
