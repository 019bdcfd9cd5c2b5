"""Group H as far as alarms go, and what CloudWatch refuses: no alarm ever stops the wrong job."""

import json
from datetime import timedelta

import pytest
from trainmaster.core.jobs.model import JobState
from trainmaster.core.monitoring import alarms as alarm_names

from tests.builders import NOON, minutes
from tests.faults.alarming import (
    alarms,
    goes,
    gpu_hosts,
    gpu_policy,
    hears,
    hears_of,
    idle_alarm,
    live,
    message,
    state_of,
    watched_job,
    work,
)
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends, trains
from tests.integration.cloud import THROTTLED, Refused
from tests.integration.world import World
from tests.markdown import text_of
from tests.template.stack import source

QUOTA = Refused("LimitExceeded")
FIFTEEN, TEN = minutes(15), minutes(10)


@pytest.fixture
def gpus(new_world: NewWorld) -> World:
    """job1 trains on a GPU, and its alarm watches it."""
    world = new_world(gpu_policy())
    watched_job(world)
    return world


@pytest.fixture
def warned(gpus: World) -> World:
    """Its GPUs do nothing, and its owner knows."""
    goes(gpus, "job1", "ALARM")
    hears_of(gpus, "job1")
    gpus.schedule()
    assert live(gpus).watch.stop_due == NOON + TEN
    return gpus


def a_run(world: World, after: timedelta = timedelta()) -> None:
    """``reconcile``, and the passes that it wake-ups for."""
    world.now += after
    world.reconcile()
    world.schedule()


# ---- D13


def test_D13_a_job_without_an_alarm_runs_and_says_so_and_it_is_tried_again(new_world: NewWorld) -> None:
    world = new_world(gpu_policy())
    world.wire.lasting["PutMetricAlarm"] = QUOTA
    assert world.submit("job1", ResourceConfig=gpu_hosts(1))["status"] == 201
    world.schedule()
    trains(world, "job1")
    a_run(world)
    reason = live(world).unmonitored
    assert reason is not None
    assert (reason.code, world.states("job1")) == ("alarm-quota", ["running"])
    (attempt,) = world.api("GET", "/jobs/job1")["attempts"]
    assert attempt["unguarded"]["code"] == "alarm-quota"

    world.wire.heal()
    a_run(world, minutes(14))
    assert alarms(world) == set(), "not tried before 15 minutes are over"
    a_run(world, minutes(1))
    assert (alarms(world), live(world).unmonitored) == ({idle_alarm("job1")}, None)


def test_D13_half_made_alarms_of_a_job_that_ends_are_swept(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(utilization={"for": "1h"}))
    assert world.submit("job1", ResourceConfig=gpu_hosts(1))["status"] == 201
    world.schedule()
    trains(world, "job1")

    def the_next_is_refused() -> None:
        world.meanwhile["PutMetricAlarm"] = lambda: world.wire.strike("PutMetricAlarm", 3, QUOTA)

    world.meanwhile["PutMetricAlarm"] = the_next_is_refused
    a_run(world)
    assert alarms(world) == {idle_alarm("job1")}, "the second was refused"
    ends(world, "job1")
    a_run(world)
    assert alarms(world) == set()


def test_D1_throttled_alarms_are_made_by_a_later_pass(new_world: NewWorld) -> None:
    world = new_world(gpu_policy())
    assert world.submit("job1", ResourceConfig=gpu_hosts(1))["status"] == 201
    world.schedule()
    trains(world, "job1")
    world.wire.lasting["PutMetricAlarm"] = THROTTLED
    world.wake()
    assert live(world).unmonitored is None, "it is not reported for a matter of seconds"
    world.wire.heal()
    a_run(world)
    assert alarms(world) == {idle_alarm("job1")}


def test_D1_a_cloudwatch_that_does_not_answer_keeps_reconcile_from_nothing_else(warned: World) -> None:
    warned.wire.lasting["DescribeAlarms"] = THROTTLED
    warned.sagemaker.end("job1", "Completed")
    a_run(warned, minutes(20))
    assert warned.states("job1") == ["completed"]


def test_D1_nobody_is_stopped_while_cloudwatch_does_not_answer(warned: World) -> None:
    warned.wire.lasting["DescribeAlarms"] = THROTTLED
    a_run(warned, minutes(20))
    assert warned.states("job1") == ["running"]


# ---- H1 to H3: messages


def test_H1_an_alarm_of_a_job_that_is_over_changes_nothing(gpus: World) -> None:
    goes(gpus, "job1", "ALARM")
    gpus.sagemaker.end("job1", "Completed")
    gpus.tell("job1")
    before = gpus.job("job1")
    hears_of(gpus, "job1")
    assert gpus.job("job1") == before


def test_H1_an_alarm_of_a_job_that_is_being_preempted_changes_nothing(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(1))
    watched_job(world)
    goes(world, "job1", "ALARM")
    assert world.submit("job2", priority=5, ResourceConfig=gpu_hosts(1))["status"] == 201
    world.schedule()
    assert world.states("job1") == ["preempting"]
    hears_of(world, "job1")
    a_run(world, minutes(20))
    assert (world.states("job1"), live(world).watch.idle_since) == (["preempting"], None)
    assert world.sagemaker.jobs["job1"].stops == 1


def test_H1_an_alarm_of_an_earlier_attempt_does_not_touch_the_later_one(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(then="requeue"))
    watched_job(world)
    goes(world, "job1", "ALARM")
    hears_of(world, "job1")
    a_run(world, TEN)
    still_there = world.cloud.cloudwatch._alarms[idle_alarm("job1")]
    ends(world, "job1", "Stopped")
    world.cloud.cloudwatch._alarms[still_there.name] = still_there
    later = live(world).training_job_name
    assert later != "job1"
    trains(world, later)
    before = world.job("job1")
    hears_of(world, "job1")
    assert world.job("job1") == before


def test_H2_the_same_message_five_times_warns_once_and_puts_nothing_off(warned: World) -> None:
    for _ in range(5):
        warned.now += minutes(1)
        hears_of(warned, "job1")
    assert live(warned).watch.stop_due == NOON + TEN
    a_run(warned, minutes(5))
    assert warned.states("job1") == ["stopping"]
    hears_of(warned, "job1")
    a_run(warned, minutes(1))
    assert warned.sagemaker.jobs["job1"].stops == 1


def test_H2_ok_and_alarm_in_the_wrong_order_mean_what_the_alarm_says_now(warned: World) -> None:
    goes(warned, "job1", "OK")
    hears_of(warned, "job1", says="OK")
    hears_of(warned, "job1", says="ALARM")
    assert live(warned).watch.idle_since is None
    a_run(warned, minutes(20))
    assert warned.states("job1") == ["running"]


def test_H2_a_message_that_was_lost_costs_a_minute(gpus: World) -> None:
    goes(gpus, "job1", "ALARM")
    a_run(gpus, minutes(1))
    assert (live(gpus).watch.idle_since, live(gpus).watch.stop_due) == (NOON, NOON + minutes(11))
    goes(gpus, "job1", "OK")
    a_run(gpus, minutes(1))
    assert (live(gpus).watch.idle_since, live(gpus).watch.stop_due) == (None, None)


def test_H2_an_ok_that_was_lost_at_the_last_moment_keeps_the_job(warned: World) -> None:
    goes(warned, "job1", "OK")
    a_run(warned, TEN)
    assert warned.states("job1") == ["running"]


def test_H2_a_job_that_worked_for_a_moment_is_warned_anew(warned: World) -> None:
    """Both messages were lost."""
    warned.now += minutes(9)
    goes(warned, "job1", "OK")
    goes(warned, "job1", "ALARM")
    a_run(warned, minutes(1))
    assert (warned.states("job1"), live(warned).watch.stop_due) == (["running"], NOON + minutes(20))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(message(idle_alarm("job1"), account="999999999999"), id="another account"),
        pytest.param(message("trainmaster-other-idle-job1"), id="another stack"),
        pytest.param(message("operator-trainmaster-idle-job1"), id="an operator's alarm"),
        pytest.param(message(idle_alarm("job1") + ".1"), id="a part of a composite"),
        pytest.param(message(idle_alarm("job1") + "\n"), id="a line end"),
        pytest.param(message(idle_alarm("nobody")), id="a job that there is not"),
        pytest.param(message(idle_alarm("job1", "other")), id="another kind"),
        pytest.param(json.dumps({"AWSAccountId": "123456789012"}), id="no name"),
        pytest.param(
            json.dumps({"AlarmName": [idle_alarm("job1")], "AWSAccountId": "123456789012"}), id="a list"
        ),
        pytest.param("[]", id="a list for a message"),
        pytest.param("null", id="null"),
        pytest.param("job1 is idle", id="not JSON"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param(message(idle_alarm("job1") + "x" * 300_000), id="huge"),
        pytest.param("", id="empty"),
    ],
)
def test_H3_what_is_not_one_of_our_alarms_is_ignored(text: str, gpus: World) -> None:
    goes(gpus, "job1", "ALARM")
    before = gpus.job("job1")
    hears(gpus, text)
    assert gpus.job("job1") == before


def test_H3_a_forged_message_finds_an_alarm_that_is_ok(gpus: World) -> None:
    goes(gpus, "job1", "OK")
    for _ in range(3):
        hears_of(gpus, "job1", says="ALARM")
    a_run(gpus, minutes(20))
    assert (live(gpus).watch.idle_since, gpus.states("job1")) == (None, ["running"])


# ---- H4 to H6: what is measured


def test_H4_nothing_is_watched_before_training(new_world: NewWorld) -> None:
    world = new_world(gpu_policy())
    assert world.submit("job1", ResourceConfig=gpu_hosts(1))["status"] == 201
    world.schedule()
    a_run(world, minutes(30))
    assert alarms(world) == set(), "downloading takes as long as it takes"
    hears_of(world, "job1")
    assert live(world).watch.idle_since is None


def test_H4_metrics_that_are_missing_are_no_idleness(gpus: World) -> None:
    work(gpus, "job1", None, minutes=40)
    assert state_of(gpus, "job1") == "OK"
    a_run(gpus)
    assert live(gpus).watch.idle_since is None


def test_H4_an_alarm_without_data_says_nothing(gpus: World) -> None:
    assert state_of(gpus, "job1") == "INSUFFICIENT_DATA"
    hears_of(gpus, "job1")
    a_run(gpus, minutes(30))
    assert gpus.states("job1") == ["running"]


def test_H4_an_alarm_without_data_is_no_reason_to_stop_a_job_that_was_warned(warned: World) -> None:
    goes(warned, "job1", "INSUFFICIENT_DATA")
    a_run(warned, minutes(20))
    assert (warned.states("job1"), live(warned).watch.idle_since) == (["running"], NOON)


@pytest.mark.parametrize(
    ("percent", "idle", "underused"),
    [
        pytest.param((0.0, 95.0), "OK", "ALARM", id="one idle host of two"),
        pytest.param((0.0, 0.0), "ALARM", "ALARM", id="both idle"),
        pytest.param((95.0, 95.0), "OK", "OK", id="both busy"),
        pytest.param((0.0, None), "OK", "ALARM", id="one idle, one silent"),
        pytest.param((95.0, 40.0), "OK", "ALARM", id="one slow"),
    ],
)
def test_H5_idle_is_the_busiest_host_and_underused_the_least_busy(
    percent: tuple[float | None, ...], idle: str, underused: str, new_world: NewWorld
) -> None:
    world = new_world(gpu_policy(utilization={"gpu_below_percent": 80, "for": "1h"}))
    watched_job(world, hosts=2)
    work(world, "job1", *percent, minutes=61)
    assert (state_of(world, "job1"), state_of(world, "job1", "utilization")) == (idle, underused)
    a_run(world)
    found = live(world)
    assert ((found.watch.idle_since is None), (found.watch.underused_since is None)) == (
        idle == "OK",
        underused == "OK",
    )
    a_run(world, minutes(20))
    assert world.states("job1") == ["stopping" if idle == "ALARM" else "running"]


def test_H5_a_stalled_job_of_many_hosts_is_idle_only_if_all_of_them_are(new_world: NewWorld) -> None:
    """12 hosts: two alarms that tell nobody, and one over both."""
    world = new_world(gpu_policy(12))
    watched_job(world, hosts=12)
    assert alarms(world) == {idle_alarm("job1"), f"{idle_alarm('job1')}.1", f"{idle_alarm('job1')}.2"}
    work(world, "job1", *[0.0] * 11, 95.0, minutes=40)
    a_run(world)
    assert live(world).watch.idle_since is None
    work(world, "job1", *[0.0] * 12, minutes=20)
    a_run(world)
    assert live(world).watch.idle_since is not None
    ends(world, "job1")
    assert alarms(world) == set()


def test_H6_an_idle_stop_and_its_end_leave_a_stopped_job_and_no_further_attempt(warned: World) -> None:
    a_run(warned, minutes(9))
    assert warned.states("job1") == ["running"], "its owner has ten minutes"
    a_run(warned, minutes(1))
    assert (warned.states("job1"), warned.sagemaker.jobs["job1"].stops) == (["stopping"], 1)
    ends(warned, "job1", "Stopped")
    a_run(warned, minutes(30))
    job = warned.job("job1")
    assert job.reason is not None
    assert (job.state, job.reason.code, job.attempt) == (JobState.STOPPED, "idle", 0)
    assert warned.sagemaker.creates == ["job1"]
    assert alarms(warned) == set()
    warned.check("job1")


def test_H6_an_idle_requeue_comes_back_and_is_not_counted_as_a_preemption(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(then="requeue"))
    watched_job(world)
    goes(world, "job1", "ALARM")
    hears_of(world, "job1")
    a_run(world, TEN)
    assert world.states("job1") == ["preempting"]
    ends(world, "job1", "Stopped")
    job = world.job("job1")
    assert (job.state, job.attempt, job.preemptions) == (JobState.RUNNING, 1, 0)
    assert alarms(world) == set(), "the next attempt gets its own, once it trains"
    world.check("job1")


def test_H6_a_policy_that_only_notifies_stops_nobody(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(then="notify"))
    watched_job(world)
    goes(world, "job1", "ALARM")
    hears_of(world, "job1")
    a_run(world, minutes(60))
    assert (world.states("job1"), live(world).watch.idle_since, live(world).watch.stop_due) == (
        ["running"],
        NOON,
        None,
    )


# ---- H9: clocks


@pytest.mark.parametrize("skew", [minutes(-5), minutes(5)], ids=["five minutes behind", "five minutes ahead"])
def test_H9_a_handler_with_another_clock_moves_the_stop_by_that_much_at_most(
    skew: timedelta, gpus: World
) -> None:
    """``reconcile`` asks for the stop and reads the alarm again; the warning came from elsewhere."""
    goes(gpus, "job1", "ALARM")
    gpus.now += skew
    hears_of(gpus, "job1")
    gpus.now -= skew
    due = live(gpus).watch.stop_due
    assert due == NOON + TEN + skew
    a_run(gpus, due - NOON - minutes(1))
    assert gpus.states("job1") == ["running"]
    a_run(gpus, minutes(1))
    assert gpus.states("job1") == ["stopping"]


def test_H9_a_clock_that_goes_back_stops_nobody_early(warned: World) -> None:
    a_run(warned, timedelta(hours=-1))
    assert (warned.states("job1"), live(warned).watch.stop_due) == (["running"], NOON + TEN)


def test_H9_alarms_that_were_refused_are_tried_again_by_the_clock_of_schedule_alone(
    new_world: NewWorld,
) -> None:
    world = new_world(gpu_policy())
    world.wire.lasting["PutMetricAlarm"] = QUOTA
    assert world.submit("job1", ResourceConfig=gpu_hosts(1))["status"] == 201
    world.schedule()
    trains(world, "job1")
    world.schedule()
    assert live(world).watch.monitor_again_at == NOON + FIFTEEN
    world.now -= minutes(5)
    world.reconcile()
    world.now += minutes(20)
    world.wire.heal()
    world.schedule()
    assert alarms(world) == {idle_alarm("job1")}


def test_H9_a_reconcile_whose_clock_is_five_minutes_ahead_starts_no_job_twice(world: World) -> None:
    """By its clock the lease of a claim is over while ``schedule`` is still at it."""

    def repaired_too_early() -> None:
        world.now += minutes(6)
        world.reconcile()
        world.now -= minutes(6)

    world.meanwhile["CreateTrainingJob"] = repaired_too_early
    assert world.submit("job1")["status"] == 201
    world.schedule()
    a_run(world, minutes(1))
    assert (world.sagemaker.creates, world.states("job1")) == (["job1"], ["running"])
    world.check("job1")


def test_H9_a_clock_that_goes_back_changes_nobodys_turn(world: World) -> None:
    """The turn is made once, by the clock of the submission; summer time does not exist in UTC."""
    for name in ("job1", "job2", "job3"):
        assert world.submit(name)["status"] == 201
        world.now += minutes(1)
    world.schedule()
    world.now -= timedelta(hours=1)
    assert world.submit("job4")["status"] == 201
    scores = [world.job(name).score for name in ("job3", "job4")]
    world.now += timedelta(hours=2)
    a_run(world)
    assert [world.job(name).score for name in ("job3", "job4")] == scores
    waiting = world.api("GET", "/jobs", query={"state": "pending"})["jobs"]
    assert [one["name"] for one in waiting] == ["job4", "job3"], "the one whose clock was earlier"


# ---- H11


def test_H11_a_deleted_stack_leaves_table_and_key_and_says_how_its_alarms_go() -> None:
    resources = source()["Resources"]
    for name in ("Table", "Key"):
        kept = (resources[name]["DeletionPolicy"], resources[name]["UpdateReplacePolicy"])
        assert kept == ("RetainExceptOnCreate", "Retain"), name  # kept, unless their own creation failed
    assert f"--alarm-name-prefix {alarm_names.full_name('STACK', '')}" in text_of("docs/idle.md")


# ---- policies that change


def test_a_changed_policy_changes_the_alarms_of_jobs_that_run(new_world: NewWorld) -> None:
    world = new_world(gpu_policy(utilization={"gpu_below_percent": 80, "for": "1h"}))
    watched_job(world)
    both = {idle_alarm("job1"), idle_alarm("job1", "utilization")}
    assert alarms(world) == both

    assert world.api("PUT", "/policy", gpu_policy(utilization={"for": "2h"}))["status"] == 200
    a_run(world)
    (found,) = world.cloud.client("cloudwatch").describe_alarms(
        AlarmNames=[idle_alarm("job1", "utilization")]
    )["MetricAlarms"]
    assert (alarms(world), found["EvaluationPeriods"]) == (both, 24)

    assert world.api("PUT", "/policy", gpu_policy())["status"] == 200
    a_run(world)
    assert alarms(world) == {idle_alarm("job1")}

    assert world.api("PUT", "/policy", gpu_policy(idle="off"))["status"] == 200
    a_run(world)
    assert (alarms(world), live(world).watch.monitored) == (set(), None)


def test_a_policy_that_asks_for_no_idleness_any_more_lets_an_idle_job_run(warned: World) -> None:
    assert warned.api("PUT", "/policy", gpu_policy(idle=False))["status"] == 200
    a_run(warned, minutes(30))
    assert (warned.states("job1"), live(warned).watch.idle_since) == (["running"], None)


def test_a_policy_that_no_longer_mentions_idleness_lets_an_idle_job_run_and_keeps_watching(
    warned: World,
) -> None:
    assert warned.api("PUT", "/policy", {"pools": gpu_policy()["pools"]})["status"] == 200
    a_run(warned, minutes(30))
    assert (warned.states("job1"), live(warned).watch.stop_due) == (["running"], None)
    assert alarms(warned) == {idle_alarm("job1")}
