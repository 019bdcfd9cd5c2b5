"""Stories of teams that share a pool: quotas, wide jobs, account limits, budgets."""

import re
from datetime import UTC, datetime

from tests.e2e.plane import INSTANCE_TYPE
from tests.scenarios.stage import A_MOMENT, Stage, StoryError, policy_of

OTHER_TYPE = "ml.c5.xlarge"

RECLAIM_POLICY = policy_of(
    teams=("a", "b"),
    capacity={INSTANCE_TYPE: 2},
    quotas={"a": {"nominal": 1}, "b": {"nominal": 1}},
)


def reclaim(stage: Stage) -> None:
    """Team b uses its instance and borrows the one of team a; when a wants it back, b's borrower goes."""
    for name in ("b-own", "b-borrows"):
        stage.submit(name, by="b", priority=900)
        stage.advance(A_MOMENT)
    stage.until_state(b_own="running", b_borrows="running")
    borrowed = {team["name"]: team["borrowed"]["on-demand"] for team in stage.pool()["teams"]}
    stage.check("GET /pools shows what is borrowed", expected={INSTANCE_TYPE: 1}, actual=borrowed["b"])
    stage.submit("a-wants", by="a", priority=0)
    stage.advance(0)
    told = stage.look("a-wants", by="a")["waiting"]["message"]
    expected = f"a job of team b is stopping to make room for {INSTANCE_TYPE}=1"
    stage.check("team a is told whose job makes room, not which", expected=expected, actual=told)
    stage.until_state(a_wants="running")
    stage.advance(60)
    owner, borrower = stage.look("a-wants", by="a"), stage.look("b-borrows", by="b")
    stage.check("only the borrower was stopped", expected=["b-borrows"], actual=stage.stopped())
    ranks = [borrower["priority"], owner["priority"]]
    stage.check("though its priority is higher", expected=[900, 0], actual=ranks)
    states = [borrower["state"], owner["state"]]
    stage.check("it does not take the instance back", expected=["preempted", "running"], actual=states)
    stage.finish("a-wants")
    stage.until_state(b_borrows="running")
    back = stage.look("b-borrows", by="b")
    stage.check(
        "it came back when a was done", expected=["running", 1], actual=[back["state"], back["attempt"]]
    )


WIDE_POLICY = policy_of(capacity={INSTANCE_TYPE: 4})


ROUNDS = 4


def wide_not_starved(stage: Stage) -> None:
    """A job of four instances waits; short jobs pass it while it waits, long ones may not."""
    blockers = [f"blocker-{number}" for number in (1, 2, 3)]
    for name in blockers:
        stage.submit(name, minutes=180)
    stage.advance(A_MOMENT)
    stage.submit("wide", count=4)
    stage.advance(A_MOMENT)
    shorts = [f"short-{number}" for number in range(ROUNDS)]
    longs = [f"long-{number}" for number in range(ROUNDS)]
    for short, long in zip(shorts, longs, strict=True):
        stage.submit(long, minutes=600)
        stage.submit(short, minutes=10)
        stage.finish(short)
        stage.advance(600)
    promised = _promise_to_wide(stage, behind=longs[0])
    stage.finish(*blockers)
    stage.until_state(wide="running")
    started = stage.look("wide")["started_at"]
    earlier = [name for name in shorts if stage.look(name)["started_at"] < started]
    stage.check("short jobs passed it", expected=shorts, actual=earlier)
    stage.check(
        "no long job did", expected=[None] * ROUNDS, actual=[stage.look(one)["started_at"] for one in longs]
    )
    in_time = datetime.fromisoformat(started) <= promised
    stage.check("it started by its reservation", expected=f"by {promised:%H:%M}", actual=started, ok=in_time)


def _promise_to_wide(stage: Stage, *, behind: str) -> datetime:
    """By when the wide job starts, as the reason of a job that may not pass it says."""
    waiting = stage.look(behind)["waiting"]
    stage.check("a long job waits for the reservation", expected="reservation", actual=waiting["code"])
    found = re.search(r"wide is ahead .* by (\S+ \S+) UTC at the latest", waiting["message"])
    if found is None:
        raise StoryError(f"no name or no time in: {waiting['message']}")
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


LIMIT_POLICY = policy_of(capacity={INSTANCE_TYPE: 2, OTHER_TYPE: 1})
LONGEST_WAITS = (60.0, 120.0)
"""Seconds until the account is asked again after the first refusal, and after the second."""
A_PASS = 60.0
"""The scheduler looks at each pool at least this often."""


def account_limit_learned(stage: Stage) -> None:
    """The account refuses a type: others still start, each refused job tries again, and then all is well."""
    stage.twin_fails("CreateTrainingJob", "ResourceLimitExceeded", times=2)
    for name in ("first", "second"):
        stage.submit(name)
    stage.advance(A_MOMENT)
    stage.submit("other-type", resources={"InstanceType": OTHER_TYPE})
    stage.until_state(other_type="running")
    codes = [stage.why(name) for name in ("first", "second")]
    stage.check("both wait for the account", expected=["account-limit"] * 2, actual=codes)
    limits = [[one["instance_type"], one["limit"]] for one in stage.pool()["account_limits"]]
    stage.check("GET /pools shows what was learned", expected=[[INSTANCE_TYPE, 0]], actual=limits)
    tried = ["first", "second", "other-type"]
    stage.check("each was tried once; another type starts", expected=tried, actual=stage.created())
    stage.twin_fails("CreateTrainingJob", "ResourceLimitExceeded", times=2)
    stage.advance(LONGEST_WAITS[0] + A_PASS)
    again = ["first", "second"]
    actual = stage.created()
    stage.check("each tried again by itself, and was refused", expected=again, actual=sorted(actual[3:]))
    stage.advance(LONGEST_WAITS[1] + A_PASS)
    stage.until_state(first="running", second="running")
    actual = stage.created()
    stage.check("the next tries worked", expected=again, actual=sorted(actual[5:]))
    stage.check("nothing is learned any more", expected=[], actual=stage.pool()["account_limits"])


BUDGET_POLICY = policy_of(
    teams=("a",),
    budgets={"a": {"usd_per_month": 1.5, "at_limit": "wait"}},
    capacity={INSTANCE_TYPE: 2},
) | {"prices": {INSTANCE_TYPE: 1.0}}


def budget_waits(stage: Stage) -> None:
    """A month's 1.50 USD cover one job's worst case of 1 USD, not two; the first settles for less."""
    for name in ("first", "second"):
        stage.submit(name, by="a", minutes=60)
    stage.until_state(first="running")
    stage.advance(A_MOMENT)
    stage.check("the second waits for the budget", expected="budget", actual=stage.why("second", by="a"))
    stage.advance(15 * 60)
    stage.finish("first")
    stage.until_state(second="running")
    usage = stage.did("GET", f"/usage?team=a&month={stage.month}", by="a")
    spent = {job["name"]: job["usd"] for job in usage["jobs"]}
    stage.check(
        "the first cost what it used", expected="about 0.25 USD", actual=spent, ok=0.2 < spent["first"] < 0.3
    )
    stage.check("the month adds up", expected=round(sum(spent.values()), 2), actual=usage["total"]["usd"])


FAIR_POLICY = policy_of(
    teams=("a", "b"),
    capacity={INSTANCE_TYPE: 1},
    order={"fair_share": {"half_life": "7d", "weight": 10}},
)


def fair_share(stage: Stage) -> None:
    """Team a has used the pool for an hour: team b goes first, until it has used more; nobody is stopped."""
    stage.submit("a-first", by="a", minutes=600)
    stage.until_state(a_first="running")
    stage.advance(3600)
    stage.submit("a-second", by="a", minutes=600)
    stage.advance(A_MOMENT)
    stage.submit("b-first", by="b", minutes=600)
    stage.advance(A_MOMENT)
    stage.check("the list follows past use", expected=["b-first", "a-second"], actual=_listed(stage))
    behind = stage.look("a-second", by="a")
    stage.check("and so do positions", expected=2, actual=behind["position"])
    said = "a has used 2.0 times its share of the last 7d: its jobs count 10 points less"
    stage.check("why says to team a", expected=said, actual=behind["fair_share"]["message"])
    ahead = stage.look("b-first", by="b")["fair_share"]["points"]
    stage.check("who has used nothing gains three times the weight", expected=30.0, actual=ahead)
    shares = {one["name"]: one["fair_share"] for one in stage.pool()["teams"]}
    hours = shares["a"]["instance_hours"]
    stage.check("GET /pools shows what was used", expected="about 1 hour", actual=hours, ok=0.9 < hours < 1.1)
    stage.check("and of what share", expected=0.5, actual=shares["a"]["share"])
    stage.finish("a-first")
    stage.until_state(b_first="running")
    stage.check("b starts, though a came first", expected=["a-first", "b-first"], actual=stage.created())
    stage.advance(2 * 3600)
    stage.submit("b-second", by="b", minutes=600)
    stage.advance(A_MOMENT)
    stage.check("b has used more by now", expected=["a-second", "b-second"], actual=_listed(stage))
    stage.finish("b-first")
    stage.until_state(a_second="running")
    stage.check("nobody was stopped for it", expected=[], actual=stage.stopped())


def _listed(stage: Stage) -> list[str]:
    return [one["name"] for one in stage.did("GET", "/jobs?pool=main&state=pending")["jobs"]]
