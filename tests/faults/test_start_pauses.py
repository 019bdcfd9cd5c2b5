"""Rows O4 and O5: AWS refuses starts. A refusal of everybody fails nobody; one job's own refusal fails it."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from trainmaster.api.jobs import show_job
from trainmaster.core.errors import AccessRefusedError, TrainingRefusedError
from trainmaster.core.lifecycle.refused_starts import JOBS_UNTIL_PAUSE
from trainmaster.core.planning.refusal_records import MOST_ROLES

from tests.bodies import body
from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.planes import plane, run, states
from tests.faults.situations import accepted
from tests.histories.world import POOL, World
from tests.integration.world import Crash
from tests.integration.world import World as DeployedWorld

ROLE = "arn:aws:iam::111122223333:role/vision-training"
OTHER = "arn:aws:iam::111122223333:role/speech-training"
MANY = tuple(f"job{number:02}" for number in range(96))
DENIED = "AccessDeniedException: User: schedule is not authorized to perform: iam:PassRole"
Objection = Callable[[Mapping[str, Any]], Exception | None]


def denies() -> Exception:
    return AccessRefusedError(DENIED)


def invalid() -> Exception:
    return TrainingRefusedError("ValidationException: The subnet does not exist")


def not_sent() -> Exception:
    return TrainingRefusedError("Parameter validation failed", code="ParamValidationError")


def pool_of(instances: int, **of_pool: Any) -> World:
    plain = {"warm_pool": {"keep_alive": "0s"}, "preemption": {"cost": {"enabled": False}}}
    return plane({"pools": [{"name": POOL, "capacity": {A: instances}, **plain, **of_pool}]})


def submit(world: World, *names: str, role: str = ROLE, priority: int = 0, instances: int = 1) -> None:
    resources = {"InstanceType": A, "InstanceCount": instances, "VolumeSizeInGB": 10}
    tags = [{"Key": "priority", "Value": str(priority)}]
    for number, name in enumerate(names):
        if number % 80 == 79:
            world.now += minutes(1)  # a team's submissions are counted by the minute
        answer = world.submit(body(TrainingJobName=name, RoleArn=role, Tags=tags, ResourceConfig=resources))
        assert answer.status == 201, answer


def refuses(world: World, error: Callable[[], Exception], *names: str, until: datetime | None = None) -> None:
    """AWS refuses starts of these jobs, or of all, for as long as that is said."""

    def objection(request: Mapping[str, Any]) -> Exception | None:
        is_over = until is not None and world.now >= until
        concerned = not names or request["TrainingJobName"] in names
        return error() if concerned and not is_over else None

    world.sagemaker.objections.append(objection)


def minutes_pass(world: World, count: int, *, watch: Callable[[], None] = lambda: None) -> None:
    for _ in range(count):
        world.now += minutes(1)
        run(world, world.reconcile)
        run(world, world.run_pass)
        watch()


def shown(world: World, name: str) -> dict[str, Any]:
    answer: Any = world._call(lambda context: show_job(context, name))
    found: dict[str, Any] = answer.body
    return found


def tries(world: World, *names: str) -> int:
    return sum(world.sagemaker.tried.count(name) for name in names)


def told(world: World) -> list[Mapping[str, Any]]:
    """What operators were notified of."""
    return [detail for kind, detail in world.notifier.told if kind == "Platform Warning"]


# ---- O4: everybody is refused


@pytest.mark.parametrize("error", [denies, invalid, not_sent])
@pytest.mark.parametrize("lasts", [1, 3, 30])
def test_O4_while_aws_refuses_everybody_no_job_fails_and_all_run_after(
    lasts: int, error: Callable[[], Exception]
) -> None:
    world = pool_of(len(MANY))
    submit(world, *MANY)
    refuses(world, error, until=world.now + minutes(lasts))
    run(world, world.run_pass)
    assert Counter(states(world, *MANY)) == {"pending": 96}
    assert len(world.sagemaker.tried) == JOBS_UNTIL_PAUSE, "the pause begins within the pass"

    def nobody_failed() -> None:
        assert "failed" not in states(world, *MANY)

    minutes_pass(world, lasts, watch=nobody_failed)
    assert len(world.sagemaker.creates) in {0, 96}
    minutes_pass(world, 15, watch=nobody_failed)
    assert Counter(states(world, *MANY)) == {"running": 96}
    assert {world.job(name).attempt for name in MANY} == {0}
    assert {world.job(name).comebacks.retries for name in MANY} == {0}
    assert world.sagemaker.creates == [*dict.fromkeys(world.sagemaker.creates)]


def test_O4_a_pause_tries_one_start_at_a_time_1_to_15_minutes_apart() -> None:
    world = pool_of(len(MANY))
    submit(world, *MANY)
    refuses(world, denies)
    run(world, world.run_pass)
    began, tried_at = world.now, []
    for _ in range(60):
        before = len(world.sagemaker.tried)
        minutes_pass(world, 1)
        tried_at += [(world.now - began) // minutes(1)] * (len(world.sagemaker.tried) - before)
    assert tried_at == [1, 3, 7, 15, 30, 45, 60]


def test_O4_operators_hear_once_a_pause() -> None:
    world = pool_of(9)
    submit(world, *MANY[:9])
    refuses(world, denies, until=world.now + minutes(30))
    run(world, world.run_pass)
    minutes_pass(world, 50)
    (warning,) = told(world)
    assert warning["subject"] == "starts-paused"
    assert ROLE in warning["what"]
    assert "PassRole" in warning["why"]
    world.now += minutes(1)
    refuses(world, denies)
    for name in MANY[:9]:
        world.sagemaker.train(name)
        world.sagemaker.end(name, "Completed")
        run(world, lambda name=name: world.hear(name))  # type: ignore[misc]
    submit(world, "late0", "late1", "late2")
    run(world, world.run_pass)
    assert len(told(world)) == 2, "another pause is another notice"


def test_O4_jobs_with_another_role_start_in_the_same_pass() -> None:
    world = pool_of(8)
    submit(world, *MANY[:6], priority=5)
    submit(world, "speech0", "speech1", role=OTHER)
    world.sagemaker.objections.append(lambda request: denies() if request["RoleArn"] == ROLE else None)
    run(world, world.run_pass)
    assert states(world, "speech0", "speech1") == ["running"] * 2
    assert states(world, *MANY[:6]) == ["pending"] * 6
    assert {shown(world, name)["waiting"]["code"] for name in MANY[:6]} == {"refused"}


def test_O4_every_job_of_a_paused_role_says_so_with_aws_s_words_and_the_next_try() -> None:
    world = pool_of(6)
    submit(world, *MANY[:6])
    refuses(world, denies)
    run(world, world.run_pass)
    waiting = shown(world, MANY[5])["waiting"]
    assert waiting["code"] == "refused"
    next_try = (world.now + minutes(1)).strftime("%Y-%m-%d %H:%M UTC")
    for part in (ROLE, DENIED, next_try):
        assert part in waiting["message"]
    tried = shown(world, MANY[0])["waiting"]
    assert tried["code"] == "refused"
    assert tried["message"].startswith(f"AWS refused to start it once: {DENIED}; the next try is at ")
    lasting = {shown(world, name)["waiting"]["code"] for name in MANY[:6]}
    minutes_pass(world, 3)
    assert lasting == {shown(world, name)["waiting"]["code"] for name in MANY[:6]} == {"refused"}


def test_O4_who_waits_for_a_paused_role_preempts_nobody_and_keeps_nothing_free() -> None:
    world = pool_of(4)
    submit(world, "low0", "low1", role=OTHER)
    run(world, world.run_pass)
    world.sagemaker.objections.append(lambda request: denies() if request["RoleArn"] == ROLE else None)
    submit(world, "small0", "small1", "small2", priority=9)
    run(world, world.run_pass)
    submit(world, "wide", priority=9, instances=4)
    submit(world, "late", role=OTHER)
    for _ in range(20):
        minutes_pass(world, 1)
        assert states(world, "low0", "low1", "late") == ["running"] * 3
        assert world.tables.pools[POOL].holds == {}


def test_O4_instances_that_were_freed_for_a_job_go_to_others_once_its_role_pauses() -> None:
    world = pool_of(2)
    submit(world, "low0", "low1", role=OTHER)
    run(world, world.run_pass)
    for name in ("low0", "low1"):
        world.sagemaker.train(name)
        run(world, lambda name=name: world.hear(name))  # type: ignore[misc]
    world.now += minutes(20)
    submit(world, "wide", priority=9, instances=2)
    run(world, world.run_pass)
    assert states(world, "low0", "low1") == ["preempting"] * 2
    paused_by(world, "refused0", "refused1", "refused2")
    for name in ("low0", "low1"):
        world.sagemaker.end(name, "Stopped")
        run(world, lambda name=name: world.hear(name))  # type: ignore[misc]
    run(world, world.run_pass)
    assert world.tables.pools[POOL].holds == {}
    assert states(world, "low0", "low1", "wide") == ["running", "running", "pending"]


def paused_by(world: World, *names: str) -> None:
    """Another pool's worth of room for three jobs that AWS refuses: the role pauses."""
    world.sagemaker.objections.append(lambda request: denies() if request["RoleArn"] == ROLE else None)
    document = {**world.document, "pools": [{**world.document["pools"][0], "capacity": {A: 5}}]}
    world.policies.put(document, pools=[POOL], replaces=world.policies.current())
    submit(world, *names, priority=10)
    run(world, world.run_pass)
    assert [role.pause is not None for role in world.tables.pools[POOL].role_starts.values()] == [True]
    world.policies.put(world.document, pools=[POOL], replaces=world.policies.current())


@pytest.mark.parametrize("bad", ["job00", "job95"])
def test_O4_a_job_at_fault_does_not_keep_a_pause_going(bad: str) -> None:
    """It is refused at each try, first or last in the queue; others try, too, and the first one ends it."""
    world = pool_of(len(MANY))
    submit(world, *MANY)
    refuses(world, invalid, bad)
    refuses(world, denies, until=world.now + minutes(3))
    run(world, world.run_pass)
    minutes_pass(world, 20)
    assert Counter(states(world, *MANY)) == {"running": 95, "failed": 1}
    assert states(world, bad) == ["failed"]


def test_O4_the_least_refused_job_that_fits_tries_even_where_others_of_the_role_do_not_fit() -> None:
    world = pool_of(3)
    submit(world, "small0", "small1", "small2")
    refuses(world, denies, "small0", "small1", "small2", "wide", until=world.now + minutes(3))
    run(world, world.run_pass)
    submit(world, "wide", instances=3)
    submit(world, "late", role=OTHER)
    run(world, world.run_pass)
    assert states(world, "late") == ["running"], "wide was never tried and fits no more"
    minutes_pass(world, 10)
    assert states(world, "small0", "small1", "small2", "wide").count("running") == 2


def test_O4_jobs_that_an_earlier_release_stored_belong_to_the_pause_of_their_role() -> None:
    world = pool_of(9)
    submit(world, *MANY[:9])
    for name in MANY[:9]:
        job = world.tables.jobs[name]
        world.tables.jobs[name] = replace(job, spec=replace(job.spec, role=None))
    submit(world, "other", role=OTHER)
    world.sagemaker.objections.append(
        lambda request: denies() if request["RoleArn"] == ROLE and world.now < until else None
    )
    until = world.now + minutes(30)
    run(world, world.run_pass)
    assert states(world, "other") == ["running"]
    minutes_pass(world, 29)
    assert states(world, *MANY[:9]) == ["pending"] * 9
    assert tries(world, *MANY[:9]) <= JOBS_UNTIL_PAUSE + 5
    minutes_pass(world, 15)
    world.sagemaker.end("other", "Completed")
    run(world, lambda: world.hear("other"))
    minutes_pass(world, 1)
    assert states(world, *MANY[:9]) == ["running"] * 9


def test_O4_roles_that_a_pool_keeps_records_of_are_bounded() -> None:
    world = pool_of(99)
    refuses(world, denies)
    for number in range(MOST_ROLES + 5):
        world.now += minutes(1)
        submit(world, f"lone{number}", role=f"arn:aws:iam::111122223333:role/r{number}")
        run(world, world.run_pass)
    records = world.tables.pools[POOL].role_starts
    assert len(records) == MOST_ROLES
    submit(world, *MANY[:4])
    run(world, world.run_pass)
    assert len(records) == MOST_ROLES
    assert [record.role_arn for record in records.values() if record.pause] == [ROLE]


# ---- O5: one job's own fault


@pytest.mark.parametrize("error", [denies, invalid, not_sent])
def test_O5_a_job_refused_twice_while_another_start_of_its_role_was_taken_fails_alone(
    error: Callable[[], Exception],
) -> None:
    world = pool_of(6)
    submit(world, "bad", priority=5)
    submit(world, "good0")
    refuses(world, error, "bad")
    run(world, world.run_pass)
    assert states(world, "bad", "good0") == ["pending", "running"]
    minutes_pass(world, 1)
    assert states(world, "bad", "good0") == ["failed", "running"]
    reason = shown(world, "bad")["reason"]
    assert reason["code"] == "failed-to-start"
    assert str(error()) in reason["message"]
    submit(world, "good1")
    minutes_pass(world, 1)
    assert states(world, "good1") == ["running"]
    assert told(world) == []


def test_O5_many_jobs_at_fault_of_one_role_fail_and_do_not_pause_it() -> None:
    world = pool_of(9)
    bad = [f"bad{number}" for number in range(6)]
    for number, name in enumerate(bad):
        submit(world, name)
        world.now += minutes(1)
        submit(world, f"good{number}")
        world.now += minutes(1)
    refuses(world, invalid, *bad)
    run(world, world.run_pass)
    minutes_pass(world, 1)
    assert states(world, *bad) == ["failed"] * 6
    assert states(world, *(f"good{number}" for number in range(6))) == ["running"] * 6
    assert told(world) == []


@pytest.mark.parametrize("error", [invalid, not_sent])
def test_O5_a_request_that_aws_refuses_is_given_up_at_the_third_time_where_no_other_was_tried(
    error: Callable[[], Exception],
) -> None:
    world = pool_of(4)
    submit(world, "alone")
    submit(world, "other", role=OTHER)
    refuses(world, error, "alone")
    run(world, world.run_pass)
    minutes_pass(world, 2)
    assert (states(world, "alone"), tries(world, "alone")) == (["pending"], 2)
    minutes_pass(world, 1)
    assert (states(world, "alone"), tries(world, "alone")) == (["failed"], 3)


def test_O5_a_missing_right_is_waited_for_an_hour_where_no_other_was_tried() -> None:
    world = pool_of(4)
    submit(world, "alone")
    refuses(world, denies)
    run(world, world.run_pass)
    minutes_pass(world, 59)
    assert states(world, "alone") == ["pending"]
    minutes_pass(world, 1)
    assert states(world, "alone") == ["failed"]
    assert tries(world, "alone") == 8, "after 1, 3, 7, 15, 30, 45 and 60 minutes"


def test_O5_two_jobs_that_are_both_refused_prove_nothing_about_each_other() -> None:
    world = pool_of(4)
    submit(world, "job0", "job1")
    refuses(world, invalid, until=world.now + minutes(120))
    run(world, world.run_pass)
    minutes_pass(world, 119)
    assert states(world, "job0", "job1") == ["pending"] * 2
    minutes_pass(world, 15)
    assert states(world, "job0", "job1") == ["running"] * 2


def test_O5_a_start_that_was_under_way_when_the_first_was_refused_says_nothing_about_it() -> None:
    """A denial begins in the middle of a pass: what AWS took just before is no proof against the job."""
    world = pool_of(8)
    submit(world, "early")
    run(world, world.run_pass)
    submit(world, "job0")
    refuses(world, denies)
    run(world, world.run_pass)
    minutes_pass(world, 5)
    assert states(world, "early", "job0") == ["running", "pending"]


def test_O5_a_refused_job_is_tried_after_1_2_4_and_at_most_15_minutes() -> None:
    world = pool_of(4)
    submit(world, "job0", "job1")
    refuses(world, denies)
    run(world, world.run_pass)
    began, waits = world.now, []
    for _ in range(60):
        before = tries(world, "job0")
        minutes_pass(world, 1)
        waits += [(world.now - began) // minutes(1)] * (tries(world, "job0") - before)
    assert waits == [1, 3, 7, 15, 30, 45, 60]


def test_O5_what_was_taken_in_between_is_forgotten_with_the_start_that_aws_takes() -> None:
    world = pool_of(4)
    submit(world, "job0", priority=5)
    submit(world, "job1")
    refuses(world, denies, "job0", until=world.now + minutes(1))
    run(world, world.run_pass)
    minutes_pass(world, 1)
    job = world.job("job0")
    assert (job.state.value, job.starts.by_request) == ("running", None)


def test_O5_its_owner_hears_of_a_lone_job_at_the_fifth_refusal() -> None:
    world = pool_of(4)
    submit(world, "alone")
    refuses(world, denies)
    run(world, world.run_pass)
    minutes_pass(world, 15)
    notices = [detail for kind, detail in world.notifier.told if kind == "Job Start Refused"]
    assert [(notice["job"], notice["refusals"]) for notice in notices] == [("alone", 5)]
    minutes_pass(world, 30)
    assert len([kind for kind, _ in world.notifier.told if kind == "Job Start Refused"]) == 1


@pytest.mark.parametrize("error", [denies, invalid])
def test_O5_unused_warm_instances_do_not_keep_a_refused_job_from_being_tried(
    error: Callable[[], Exception],
) -> None:
    """They are another job's leftovers, and fit no request but one like its own."""
    world = pool_of(1, warm_pool={"keep_alive": "30m", "retain": "30m"})
    submit(world, "bad", priority=5)
    refuses(world, error, "bad")
    run(world, world.run_pass)
    resources = {"InstanceType": A, "InstanceCount": 1, "VolumeSizeInGB": 99}
    assert world.submit(body(TrainingJobName="good", RoleArn=ROLE, ResourceConfig=resources)).status == 201
    run(world, world.run_pass)
    world.sagemaker.train("good")
    world.sagemaker.end("good", "Completed")
    run(world, lambda: world.hear("good"))
    assert world.tables.pools[POOL].warm_pools
    minutes_pass(world, 4)
    assert states(world, "bad") == ["failed"]


# ---- two passes at once, on the real table


def denied_world(new_world: NewWorld, jobs: int) -> DeployedWorld:
    """Starts are paused after three refusals, and all jobs wait."""
    world: DeployedWorld = new_world({"pools": [{"name": "main", "capacity": {A: jobs}}]})
    for number in range(jobs):
        accepted(world, f"job{number}")
    world.sagemaker.refuse["CreateTrainingJob"] = [("AccessDeniedException", 400)] * 3
    world.schedule()
    assert world.states(*(f"job{number}" for number in range(jobs))) == ["pending"] * jobs
    return world


def test_O4_pools_say_that_starts_pause_and_nothing_where_they_do_not(new_world: NewWorld) -> None:
    world = denied_world(new_world, 4)
    (pool,) = world.api("GET", "/pools")["pools"]
    (pause,) = pool["start_pauses"]
    assert pause["code"] == "AccessDeniedException"
    assert pause["role_arn"].endswith(":role/training")
    world.a_minute_passes()
    (pool,) = world.api("GET", "/pools")["pools"]
    assert "start_pauses" not in pool


def test_O4_of_two_passes_at_once_one_tries(new_world: NewWorld) -> None:
    world = denied_world(new_world, 6)
    world.sagemaker.refuse["CreateTrainingJob"] = [("AccessDeniedException", 400)] * 99
    world.now += minutes(1)
    world.meanwhile["TransactWriteItems"] = world.wake  # the other one has read the same and is faster
    world.wake()
    assert len(world.sagemaker.refuse["CreateTrainingJob"]) == 98
    world.now += minutes(2)
    world.meanwhile["CreateTrainingJob"] = world.wake  # the other one begins while the first asks
    world.wake()
    assert len(world.sagemaker.refuse["CreateTrainingJob"]) == 97
    world.check(*(f"job{number}" for number in range(6)))


def test_O4_refusals_of_two_passes_at_once_are_all_counted(new_world: NewWorld) -> None:
    world: DeployedWorld = new_world({"pools": [{"name": "main", "capacity": {A: 9}}]})
    accepted(world, "job0")
    accepted(world, "job1")
    world.sagemaker.refuse["CreateTrainingJob"] = [("AccessDeniedException", 400)] * 4
    world.meanwhile["CreateTrainingJob"] = world.wake
    world.wake()
    (record,) = world.wiring.reader.role_starts("main").values()
    assert (record.number, len(record.refused), record.pause) == (2, 2, None)
    accepted(world, "job2")
    world.wake()
    (record,) = world.wiring.reader.role_starts("main").values()
    assert record.pause is not None


def test_O4_a_probe_whose_pass_died_is_followed_by_another_when_its_lease_is_over(
    new_world: NewWorld,
) -> None:
    world = denied_world(new_world, 4)
    world.now += minutes(1)
    assert world.dies(world.wake, Crash("CreateTrainingJob", "before"))
    world.now += minutes(2)
    world.wake()
    assert world.sagemaker.creates == [], "its lease keeps the one try"
    world.a_minute_passes()
    world.a_minute_passes()
    assert world.states(*(f"job{number}" for number in range(4))) == ["running"] * 4


def test_O4_a_record_that_cannot_be_read_costs_no_job_its_way_back(new_world: NewWorld) -> None:
    world = denied_world(new_world, 4)
    (key,) = world.wiring.reader.role_starts("main")
    world.cloud.client("dynamodb").update_item(
        TableName="trainmaster",
        Key={"pk": {"S": "P#main"}, "sk": {"S": "counters"}},
        UpdateExpression="SET #role = :broken",
        ExpressionAttributeNames={"#role": f"role#{key}"},
        ExpressionAttributeValues={":broken": {"S": "?"}},
    )
    world.sagemaker.refuse["CreateTrainingJob"] = [("AccessDeniedException", 400)] * 4
    world.now += minutes(1)
    world.wake()
    assert world.states(*(f"job{number}" for number in range(4))) == ["pending"] * 4
    world.a_minute_passes()
    assert world.states(*(f"job{number}" for number in range(4))) == ["running"] * 4


def test_O4_a_stop_while_aws_refuses_is_a_stop(new_world: NewWorld) -> None:
    world: DeployedWorld = new_world({"pools": [{"name": "main", "capacity": {A: 1}}]})
    accepted(world, "job0")
    world.sagemaker.refuse["CreateTrainingJob"] = [("AccessDeniedException", 400)]
    world.meanwhile["CreateTrainingJob"] = lambda: world.cancel("job0")
    world.schedule()
    assert world.states("job0") == ["stopped"]
    world.check("job0")
