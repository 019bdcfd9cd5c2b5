"""Rows K8 and K14: what one team asks of the API costs the others nothing, and answers have a size."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count, permutations
from typing import Any

import pytest
from trainmaster.api import Outside, build_api, paging, router
from trainmaster.api.pool_forecasts import ANSWER_CPU_SECONDS
from trainmaster.core.costs.ledger import PreemptionEntry
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.records import Alias, PoolState, TeamState
from trainmaster.core.rules.violation import Outcome, ViolationRecord
from trainmaster.services.read_counts import ReadCounts

from tests.bodies import body, tag_list
from tests.builders import NOON, changed, job, live_job, of
from tests.faults.conftest import NewWorld
from tests.memory.edges import MemoryReadCounts, MemoryRegister, MemoryRepairs, MemoryWakeUps
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables, Usage

OWN = "111122223333"
RED, BLUE = (f"arn:aws:sts::{OWN}:assumed-role/{name}/someone" for name in ("red", "blue"))
ADMIN = f"arn:aws:iam::{OWN}:user/admin"
P5 = "ml.p5.48xlarge"
MOST_READS, MOST_CHANGES = 3000, 100


def document(**limits: int) -> dict[str, Any]:
    pools = [{"name": "p5", "capacity": {P5: 2}, "limits": limits}]
    teams = [
        {"name": name, "roles": "any", "principals": [f"arn:aws:iam::{OWN}:role/{name}"]}
        for name in ("red", "blue")
    ]
    return {"pools": pools, "teams": teams}


@dataclass(slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    json: dict[str, Any]


@dataclass(slots=True)
class Plane:
    """The API over a table in memory; instances of its function share the table alone."""

    policy: dict[str, Any] = field(default_factory=document)
    now: datetime = NOON
    tables: Tables = field(default_factory=Tables)
    counts: MemoryReadCounts = field(default_factory=MemoryReadCounts)
    handle: Callable[[dict[str, Any], Any], dict[str, Any]] = field(init=False)
    entries: int = 1_000_000

    def __post_init__(self) -> None:
        policies = MemoryPolicyStore(self.tables)
        pools = [pool["name"] for pool in self.policy["pools"]]
        policies.put(self.policy, pools=pools, replaces=policies.current())
        self.handle = self.instance()

    def instance(self, **other: Any) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
        """One more instance of the function."""
        outside: dict[str, Any] = {
            "store": MemoryJobStore(self.tables),
            "reader": MemoryReader(self.tables),
            "policies": MemoryPolicyStore(self.tables),
            "wake_ups": MemoryWakeUps(),
            "clock": lambda: self.now,
            "register": MemoryRegister(),
            "repairs": MemoryRepairs(),
            "random_bytes": self.random_bytes,
            "account_id": OWN,
            "admin_principal_arns": (ADMIN,),
            "reads": ReadCounts(self.counts),
        }
        return build_api(Outside(**outside | other))

    def random_bytes(self, count: int) -> bytes:
        self.entries += 1
        return self.entries.to_bytes(count, "big")

    def call(self, method: str, path: str, content: Any = None, *, user: str = RED, **query: str) -> Answer:
        event = {
            "path": path,
            "httpMethod": method,
            "headers": {"content-type": "application/json"},
            "queryStringParameters": query or None,
            "multiValueQueryStringParameters": {name: [one] for name, one in query.items()} or None,
            "requestContext": {"identity": {"userArn": user}},
            "body": None if content is None else json.dumps(content),
        }
        answer = self.handle(event, None)
        headers = {name.lower(): values[0] for name, values in answer["multiValueHeaders"].items()}
        return Answer(status=answer["statusCode"], headers=headers, json=json.loads(answer["body"]))

    def submit(self, name: str, *, user: str = RED, **changes: Any) -> Answer:
        options = changes.pop("tags", {})
        request = body(TrainingJobName=name, Tags=tag_list(options), **changes)
        return self.call("POST", "/add-job", request, user=user)


def statuses(answers: Iterable[Answer]) -> dict[int, int]:
    found: dict[int, int] = {}
    for answer in answers:
        found[answer.status] = found.get(answer.status, 0) + 1
    return found


def test_K14_reads_of_a_team_are_limited_and_those_of_others_are_not() -> None:
    plane = Plane(document(max_reads_per_minute=40))
    plane.now += timedelta(seconds=18)
    plane.submit("a")
    paths = ("/jobs", "/jobs/a", "/pools", "/usage", "/violations", "/jobs/nothing")
    found = [plane.call("GET", paths[number % len(paths)]) for number in range(60)]
    assert [one.status == 429 for one in found] == [False] * 40 + [True] * 20
    refusal = found[-1]
    assert refusal.headers["retry-after"] == "42"
    assert refusal.json["errors"][0]["rule"] == "max_reads_per_minute"
    assert plane.call("GET", "/jobs", user=BLUE).status == 200
    assert plane.call("GET", "/jobs", user=ADMIN).status == 200
    assert plane.submit("b", user=BLUE).status == 201
    plane.now += timedelta(seconds=42)
    assert plane.call("GET", "/jobs").status == 200


def test_K14_a_team_that_has_read_too_often_still_submits_changes_and_cancels() -> None:
    plane = Plane(document(max_reads_per_minute=1))
    plane.submit("a")
    assert statuses(plane.call("GET", "/jobs") for _ in range(2)) == {200: 1, 429: 1}
    assert plane.submit("b").status == 201
    assert plane.call("PATCH", "/jobs/a", {"held": True}).status == 200
    assert plane.call("DELETE", "/jobs/a").status == 202
    dry_run = plane.call("POST", "/add-job", body(), dry_run="true")
    assert dry_run.status == 429, "a dry run is a read"


def test_K14_the_most_generous_pool_says_how_often_a_team_may_read() -> None:
    policy = document(max_reads_per_minute=2)
    policy["pools"].append(
        {"name": "g5", "capacity": {"ml.g5.xlarge": 1}, "limits": {"max_reads_per_minute": 5}}
    )
    plane = Plane(policy, now=NOON + timedelta(minutes=10))
    assert statuses(plane.call("GET", "/jobs", pool="p5") for _ in range(7)) == {200: 5, 429: 2}


def test_K14_who_reads_at_100_a_second_for_five_minutes_has_the_limit_in_each() -> None:
    """Four instances of the function, calls in turn: beyond the limit only what none of them has told."""
    table = MemoryReadCounts()
    instances = [ReadCounts(table) for _ in range(4)]
    accepted: Counter[int] = Counter()
    for number in range(100 * 300):
        now = NOON + timedelta(seconds=number / 100)
        accepted[number // 6000] += instances[number % 4].within("red", most=MOST_READS, now=now)
    assert len(accepted) == 5
    a_second = 100
    assert all(abs(count - MOST_READS) <= a_second for count in accepted.values()), accepted
    assert len(table.writes) <= 4 * 300, "one a second and instance"


def test_K14_the_count_of_reads_is_told_once_a_second_and_a_few_reads_cost_no_write() -> None:
    plane = Plane(document(max_reads_per_minute=MOST_READS))
    for _ in range(29):
        plane.call("GET", "/usage")
    assert plane.counts.writes == []
    for number in range(1000):
        plane.now = NOON + timedelta(milliseconds=10 * number)
        plane.call("GET", "/usage")
    seconds = [at.second for _, at in plane.counts.writes]
    assert 9 <= len(seconds) <= 10
    assert len(set(seconds)) == len(seconds)


def test_K14_a_table_that_takes_no_counts_neither_fails_nor_slows_the_answers() -> None:
    plane = Plane(document(max_reads_per_minute=110))
    plane.counts.is_broken = True
    found = []
    for number in range(120):
        plane.now = NOON + timedelta(milliseconds=100 * number)
        found.append(plane.call("GET", "/usage"))
    assert statuses(found) == {200: 110, 429: 10}, "each instance still knows what it counted itself"
    assert len(plane.counts.writes) == 2, "12 seconds, and 10 of rest after each try"


class Untouchable:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"used {name}")


def test_K14_who_is_refused_is_refused_unread_until_the_minute_is_over() -> None:
    plane = Plane(document(max_reads_per_minute=1))
    reads = ReadCounts(plane.counts)
    plane.handle = plane.instance(reads=reads)
    assert statuses(plane.call("GET", "/jobs") for _ in range(2)) == {200: 1, 429: 1}
    nothing: Any = Untouchable()
    plane.handle = plane.instance(reads=reads, policies=nothing, reader=nothing)
    assert plane.call("GET", "/jobs").status == 429


def test_K14_changes_count_with_submissions_and_a_cancel_is_never_refused() -> None:
    plane = Plane(document(max_submissions_per_minute=MOST_CHANGES))
    plane.now += timedelta(seconds=5)
    plane.submit("a")
    plane.submit("b")
    found = [plane.call("PATCH", "/jobs/a", {"held": number % 2 == 0}) for number in range(300)]
    assert statuses(found) == {200: MOST_CHANGES - 2, 429: 202}
    assert found[-1].headers["retry-after"] == "55"
    assert found[-1].json["errors"][0]["rule"] == "max_submissions_per_minute"
    assert plane.submit("c").status == 429
    assert plane.submit("d", user=BLUE).status == 201
    assert plane.call("PATCH", "/jobs/a", {"priority": 3}, user=ADMIN).status == 200
    assert [plane.call("DELETE", f"/jobs/{name}").status for name in ("a", "b")] == [202, 202]


def test_K14_without_teams_there_is_one_limit_for_all() -> None:
    policy = document(max_reads_per_minute=3) | {"teams": []}
    plane = Plane(policy, now=NOON + timedelta(minutes=10))
    users = (RED, BLUE)
    assert statuses(plane.call("GET", "/jobs", user=users[number % 2]) for number in range(5)) == {
        200: 3,
        429: 2,
    }


TYPES = [f"ml.g5.{size}xlarge" for size in (2, 4, 8, 12, 16, 24, 48)]


class Counting:
    """A reader that knows what was asked of it."""

    def __init__(self, reader: MemoryReader) -> None:
        self._reader = reader
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self._reader, name)


def crowd(waiting: int) -> Plane:
    """A full pool of 14 instances, and so many jobs of team red that wait, no two of one shape."""
    policy = document() | {"pools": [{"name": "main", "capacity": dict.fromkeys(TYPES, 2)}]}
    plane = Plane(policy, now=NOON + timedelta(minutes=10))
    tables = plane.tables
    for kind in TYPES:
        vector = of(2, kind)
        one = live_job(f"on-{kind.replace('.', '-')}", team="blue", vector=vector, entry_id=kind)
        assert one.live is not None
        training = changed(one.live, shape=Shape(vector=vector), training_since=NOON)
        tables.jobs[one.name] = changed(one, live=training)
        tables.pools["main"].used.update(vector)
    orders = permutations([(kind, instances) for kind in TYPES for instances in (1, 2)], 4)
    for number, order in zip(range(waiting), orders, strict=False):
        shapes = tuple(Shape(vector=of(instances, kind)) for kind, instances in order)
        score = epoch_ms(NOON) + number
        one = job(f"w-{number}", team="red", shapes=shapes, entry_id=f"{number:04d}", score=score)
        tables.jobs[one.name] = one
        tables.aliases[one.name] = Alias(job=one.name, entry_id=one.spec.entry_id, attempt=0)
    return plane


def spends(step: float) -> Callable[[], float]:
    """CPU seconds of a process that spends so much between two looks at them."""
    ticks = count()
    return lambda: next(ticks) * step


def dry_run(plane: Plane) -> Answer:
    resources = {"InstanceType": TYPES[0], "InstanceCount": 1, "VolumeSizeInGB": 50}
    request = body(TrainingJobName="mine", ResourceConfig=resources, Tags=[])
    return plane.call("POST", "/add-job", request, dry_run="true")


def test_K8_an_estimate_behind_many_shapes_has_a_deadline_of_cpu_time() -> None:
    """5 ms a step of a future: a machine with 0.6 of a CPU takes as long."""
    asked = []
    for waiting in (20, 75, 150):
        plane = crowd(waiting)
        reader = Counting(MemoryReader(plane.tables))
        spent = spends(0.005)
        plane.handle = plane.instance(reader=reader, cpu_seconds=spent)
        found = plane.call("GET", f"/jobs/w-{waiting - 1}")
        assert (found.status, found.json["position"]) == (200, waiting)
        assert (found.json["estimated_start"] is None) != (found.json["estimate_note"] is None)
        assert spent() <= ANSWER_CPU_SECONDS + 0.02
        asked.append(dict(reader.asked))
    assert asked[0] == asked[1] == asked[2], "what is read does not grow with the queue"


@pytest.mark.parametrize("what", ["GET", "dry run"])
def test_K8_where_time_is_up_the_answer_says_so_and_has_everything_else(what: str) -> None:
    plane = crowd(20)
    plane.handle = plane.instance(cpu_seconds=spends(1.0))
    found = plane.call("GET", "/jobs/w-19") if what == "GET" else dry_run(plane)
    assert found.status == 200
    assert found.json["estimated_start"] is None
    assert found.json["estimate_note"] == (
        "not estimated: there was no time to work it out behind so many others"
    )
    assert found.json["position"] == (20 if what == "GET" else 21)


@pytest.mark.parametrize("what", ["GET", "dry run"])
def test_K8_behind_hundreds_of_shapes_no_estimate_is_begun(what: str) -> None:
    plane = crowd(900)
    plane.handle = plane.instance(cpu_seconds=spends(0.001))
    found = plane.call("GET", "/jobs/w-899") if what == "GET" else dry_run(plane)
    assert (found.status, found.json["estimated_start"]) == (200, None)
    assert found.json["estimate_note"] == "not estimated: jobs of more than 250 different shapes go before it"


def test_K8_behind_a_thousand_jobs_the_note_says_how_many() -> None:
    found = crowd(1001).call("GET", "/jobs/w-1000")
    assert (found.status, found.json["position"], found.json["ahead_at_least"]) == (200, None, 1000)
    assert found.json["estimate_note"] == "not estimated: 1000 jobs or more go before it"


class Slow(Counting):
    """What asks the planner is not to be asked any more."""

    def snapshot(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("there was no time for it")


@pytest.mark.parametrize("what", ["GET", "list", "dry run", "PATCH"])
def test_K8_with_little_time_left_the_answer_leaves_out_what_it_can_do_without(what: str) -> None:
    """Else the function would be ended, and the caller get a 502."""
    plane = crowd(20)
    plane.handle = plane.instance(reader=Slow(MemoryReader(plane.tables)), left=timedelta)
    found = {
        "GET": lambda: plane.call("GET", "/jobs/w-19"),
        "list": lambda: plane.call("GET", "/jobs"),
        "dry run": lambda: dry_run(plane),
        "PATCH": lambda: plane.call("PATCH", "/jobs/w-19", {"priority": 1}),
    }[what]()
    assert found.status == 200
    if what in {"GET", "dry run"}:
        assert found.json["estimated_start"] is None
        assert "no time" in found.json["estimate_note"]


def test_K8_an_estimate_that_nobody_asked_for_needs_no_note() -> None:
    found = crowd(3).call("GET", "/jobs/w-2", estimate="false")
    assert (found.json["estimated_start"], found.json["estimate_note"]) == (None, None)


def pages(plane: Plane, path: str, listed: str, *, user: str = RED, **query: str) -> list[list[Any]]:
    """What each answer lists, from token to token."""
    found: list[list[Any]] = []
    token: dict[str, str] = {}
    while True:
        answer = plane.call("GET", path, user=user, **query, **token)
        assert answer.status == 200, answer
        found.append(answer.json[listed])
        if answer.json["next_token"] is None:
            return found
        token = {"next_token": answer.json["next_token"]}


def joined(parts: list[list[Any]]) -> list[Any]:
    return [one for part in parts for one in part]


class WithManyTeams(Counting):
    def pool_state(self, pool: str) -> PoolState:
        state: PoolState = self._reader.pool_state(pool)
        teams = {f"team-{number:04d}": TeamState(used={}, waiting=0) for number in range(1000)}
        return replace(state, teams=teams)


def test_the_pools_of_a_thousand_teams_come_in_answers_of_four_megabytes() -> None:
    policy = document()
    policy["pools"] = [{"name": f"p-{number}", "capacity": {f"ml.p5.{number}": 1}} for number in range(30)]
    plane = Plane(policy)
    plane.handle = plane.instance(reader=WithManyTeams(MemoryReader(plane.tables)))
    found = pages(plane, "/pools", "pools")
    assert [pool["name"] for pool in joined(found)] == [pool["name"] for pool in policy["pools"]]
    assert len(found) > 1
    assert all(len(json.dumps(part)) <= 4_000_100 for part in found)
    (only,) = pages(plane, "/pools", "pools", pool="p-7")
    assert [pool["name"] for pool in only] == ["p-7"]
    refused = plane.call("GET", "/pools", pool="nowhere")
    assert (refused.status, refused.json["errors"][0]["field"]) == (400, "query.pool")


def test_pools_end_where_time_does_and_go_on_with_the_token() -> None:
    policy = document()
    policy["pools"] = [{"name": f"p-{number}", "capacity": {f"ml.p5.{number}": 1}} for number in range(5)]
    plane = Plane(policy)
    plane.handle = plane.instance(left=timedelta)
    found = pages(plane, "/pools", "pools")
    assert [[pool["name"] for pool in part] for part in found] == [[f"p-{number}"] for number in range(5)]


def test_a_list_of_jobs_that_is_cut_goes_on_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = crowd(30)
    whole = joined(pages(plane, "/jobs", "jobs", limit="100"))
    assert len(whole) == 37
    monkeypatch.setattr(paging, "MOST_BYTES", 5_000)
    found = pages(plane, "/jobs", "jobs", limit="100")
    assert joined(found) == whole
    assert len(found) > 3
    assert all(len(json.dumps(part)) <= 5_100 for part in found)
    monkeypatch.setattr(paging, "MOST_BYTES", 1)
    assert joined(pages(plane, "/jobs", "jobs", limit="100")) == whole, "one at least is in each answer"


def test_what_a_month_was_spent_on_is_cut_and_its_sums_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = Plane()
    month = plane.tables.months["red", "2026-11"]
    month.jobs = {f"job-{number:03d}": Usage(instance_seconds=3600) for number in range(50)}
    month.takings = [taking(number) for number in range(20)]
    whole = plane.call("GET", "/usage").json
    assert (len(whole["jobs"]), len(whole["preemptions"])) == (50, 20)
    monkeypatch.setattr(paging, "MOST_BYTES", 3_000)
    assert joined(pages(plane, "/usage", "jobs")) == whole["jobs"]
    assert joined(pages(plane, "/usage", "preemptions")) == whole["preemptions"]
    assert plane.call("GET", "/usage").json["total"] == whole["total"]


def taking(number: int) -> PreemptionEntry:
    return PreemptionEntry(
        at=NOON + timedelta(seconds=number),
        victim=f"job-{number:03d}",
        victim_team="red",
        preemptor="other",
        preemptor_team="blue",
        instance_seconds_lost=60,
        cents_lost=1,
    )


def test_violations_are_cut_and_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = Plane()
    for number in range(40):
        one = violation_record(number)
        plane.tables.violations[one.at, one.training_job_name] = one
    whole = joined(pages(plane, "/violations", "violations"))
    assert [one["training_job_name"] for one in whole] == [f"x-{number:02d}" for number in range(40)]
    monkeypatch.setattr(paging, "MOST_BYTES", 2_000)
    found = pages(plane, "/violations", "violations")
    assert joined(found) == whole
    assert len(found) > 5


def violation_record(number: int) -> ViolationRecord:
    return ViolationRecord(
        at=NOON + timedelta(seconds=number),
        training_job_name=f"x-{number:02d}",
        team="red",
        role_arn="arn:aws:iam::111122223333:role/red",
        unmanaged=True,
        outcome=Outcome.AUDITED,
        violations=(),
        revision=1,
    )


def test_a_policy_with_thousands_of_mistakes_is_answered_with_the_first_of_them() -> None:
    wrong = {"pools": [{f"key-{number}": 1 for number in range(9000)}]}
    plane = Plane()
    answer = plane.call("PUT", "/policy", wrong, user=ADMIN)
    assert answer.status == 422
    assert len(json.dumps(answer.json)) < 600_000
    listed = len(answer.json["errors"])
    assert 100 < listed < 9000
    assert f"the first {listed} of 9" in answer.json["detail"]


def test_an_answer_that_is_too_large_all_the_same_is_a_problem_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(router, "MOST_ANSWER_BYTES", 100)
    answer = Plane().call("GET", "/pools")
    assert (answer.status, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "ask for less" in answer.json["detail"]


HOSTILE: dict[str, tuple[str, dict[str, Any], str]] = {
    "a token of a megabyte": ("/jobs", {"next_token": ["A" * 1_000_000]}, "query.next_token"),
    "a token that is no base64": ("/violations", {"next_token": ["%%%"]}, "query.next_token"),
    "a token of another list": ("/usage", {"next_token": ["QUJD" * 20]}, "query.next_token"),
    "a token of pools": ("/pools", {"next_token": ["QUJD" * 20]}, "query.next_token"),
    "a parameter given twice": ("/jobs", {"team": ["red", "blue"]}, "query.team"),
    "a parameter that nobody knows": ("/pools", {"Pool": ["p5"]}, "query.Pool"),
    "a limit of many digits": ("/jobs", {"limit": ["9" * 5000]}, "query.limit"),
    "a limit in other digits": ("/jobs", {"limit": ["٣"]}, "query.limit"),
    "a month of many characters": ("/usage", {"month": ["2026-11" * 1000]}, "query.month"),
}


@pytest.mark.parametrize(("path", "query", "field"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_parameters_are_refused_by_name_in_a_short_answer(
    path: str, query: dict[str, Any], field: str
) -> None:
    plane = Plane()
    event = {
        "path": path,
        "httpMethod": "GET",
        "headers": {},
        "multiValueQueryStringParameters": query,
        "requestContext": {"identity": {"userArn": RED}},
        "body": None,
    }
    answer = plane.handle(event, None)
    assert answer["statusCode"] == 400
    assert len(answer["body"]) < 2_000
    assert [one["field"] for one in json.loads(answer["body"])["errors"]] == [field]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/add-job"),
        ("PATCH", "/jobs/a"),
        ("PUT", "/policy"),
        ("PUT", "/policy/paused"),
        ("POST", "/repair"),
    ],
)
def test_deep_and_large_bodies_are_refused_on_every_route(method: str, path: str) -> None:
    plane = Plane()
    plane.submit("a")
    event = {
        "path": path,
        "httpMethod": method,
        "headers": {"content-type": "application/json"},
        "requestContext": {"identity": {"userArn": ADMIN}},
    }
    deep = '{"a":' * 40_000 + "1" + "}" * 40_000
    assert plane.handle(event | {"body": deep}, None)["statusCode"] in {400, 413}
    assert plane.handle(event | {"body": '{"a": "' + "x" * 300_000 + '"}'}, None)["statusCode"] == 413
    twice = '{"priority": 1, "priority": 2}'
    assert plane.handle(event | {"body": twice}, None)["statusCode"] == 400


@pytest.mark.thorough
def test_K8_what_is_asked_of_the_table_does_not_grow_with_the_shapes_that_wait(new_world: NewWorld) -> None:
    world = new_world({"pools": [{"name": "main", "capacity": dict.fromkeys(TYPES, 2)}]})
    orders = permutations([(kind, instances) for kind in TYPES for instances in (1, 2)], 4)
    calls = []
    for number in range(150):
        shapes = tuple(Shape(vector=of(instances, kind)) for kind, instances in next(orders))
        one = job(f"w-{number}", shapes=shapes, entry_id=f"{number:04d}", score=epoch_ms(NOON) + number)
        world.wiring.store.submit(one, b"{}")
        if number + 1 in {20, 75, 150}:
            calls.append(world.calls_of(lambda name=one.name: world.api("GET", f"/jobs/{name}")))  # type: ignore[misc]
    assert [len(one) for one in calls] == [len(calls[0])] * 3, calls
    assert world.api("GET", "/jobs/w-149")["position"] == 150
