"""Handlers at work, to be killed in the middle, and where everything must be once it has come to rest."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainmaster.core.jobs.instances import Vector

from tests.builders import A, B, of
from tests.faults.alarming import alarms, gpu_policy, idle_alarm
from tests.faults.situations import (
    a_choice_was_made,
    account_allows_more_by_now,
    account_allows_one,
    alarm_goes_off,
    alarm_is_heard,
    an_alarm_is_orphaned,
    backs_off,
    delete,
    gpus_train,
    hold,
    idle_for_too_long,
    job1_is_heard_of,
    lower_the_capacity,
    much_to_repair,
    one_completed,
    one_failed,
    one_is_held,
    preemptor_left,
    probe_is_refused,
    raise_the_priority,
    refused,
    release,
    spot_fell_back,
    spot_is_no_good,
    starts_pause,
    the_order_changes,
    three_are_refused,
    three_want_two,
    two_run,
    urgent_comes,
    victim_stopped,
    waits,
    warm_pool_in_the_way,
    warm_pool_left,
    warm_pool_taken,
    warm_pool_wanted,
    watched_job_has_ended,
)
from tests.integration.world import World


@dataclass(frozen=True, slots=True)
class Scenario:
    """One handler at work, and where everything must be in the end, whatever died in between."""

    prepare: Callable[[World], Any]
    act: Callable[[World], Any]
    ends: dict[str, str]
    """State of each job once everything has come to rest."""
    policy: dict[str, Any] | None = None
    capacity: Vector | None = None
    """What must not be exceeded, where the policy was changed to less."""
    again: Callable[[World], Any] | None = None
    """What the outside repeats by itself: the client its request."""
    watched: tuple[str, ...] = ()
    """Training jobs that have an alarm in the end."""
    on_demand: tuple[str, ...] = ()
    """Jobs that left spot."""


SPOT = {"pools": [{"name": "main", "capacity": {A: 2}, "spot_capacity": {A: 1}}]}
WARM = {"pools": [{"name": "main", "capacity": {A: 2}, "warm_pool": {"keep_alive": "10m"}}]}
FOUR = {"pools": [{"name": "main", "capacity": {A: 4}}]}
FOUR_RUN = {f"job{number}": "running" for number in range(1, 5)}
TWO_TYPES = {"pools": [{"name": "main", "capacity": {A: 1, B: 1}}]}
ONE_LEFT = {"job1": "completed", "job2": "running"}
TAKEN_OVER = ONE_LEFT | {"job3": "running"}
THREE_OF_TWO = {"job1": "running", "job2": "running", "job3": "pending"}
MADE_ROOM = {"job1": "preempted", "job2": "running", "job4": "running"}
SCENARIOS = {
    "submit": Scenario(lambda _: None, waits, {"job1": "running"}, again=waits),
    "start": Scenario(waits, World.schedule, {"job1": "running"}),
    "a start that is refused": Scenario(refused, World.schedule, {"job1": "failed"}),
    "starts that are refused until they pause": Scenario(
        three_are_refused, World.schedule, FOUR_RUN, policy=FOUR
    ),
    "a probe that is refused": Scenario(starts_pause, probe_is_refused, FOUR_RUN, policy=FOUR),
    "a probe that ends a pause": Scenario(starts_pause, World.wake, FOUR_RUN, policy=FOUR),
    "preempt": Scenario(urgent_comes, World.schedule, MADE_ROOM),
    "requeue": Scenario(victim_stopped, job1_is_heard_of, MADE_ROOM),
    "end": Scenario(one_completed, job1_is_heard_of, {"job1": "completed", "job2": "running"}),
    "cancel": Scenario(two_run, delete, {"job1": "stopped", "job2": "running"}, again=delete),
    "make alarms": Scenario(
        gpus_train, World.wake, {"job1": "running"}, policy=gpu_policy(), watched=("job1",)
    ),
    "idle alarm": Scenario(
        alarm_goes_off,
        alarm_is_heard,
        {"job1": "running"},
        policy=gpu_policy(then="notify"),
        watched=("job1",),
    ),
    "an idle job is stopped": Scenario(
        idle_for_too_long, World.reconcile, {"job1": "stopped"}, policy=gpu_policy()
    ),
    "delete alarms": Scenario(
        watched_job_has_ended, World.schedule, {"job1": "completed"}, policy=gpu_policy()
    ),
    "sweep alarms": Scenario(
        an_alarm_is_orphaned, World.reconcile, {"job1": "completed"}, policy=gpu_policy()
    ),
    "a failure that is retried": Scenario(
        one_failed, job1_is_heard_of, {"job1": "running", "job2": "running"}
    ),
    "too many interruptions": Scenario(
        spot_is_no_good, job1_is_heard_of, {"job1": "running"}, policy=SPOT, on_demand=("job1",)
    ),
    "back on demand": Scenario(
        spot_fell_back, job1_is_heard_of, {"job1": "running"}, policy=SPOT, on_demand=("job1",)
    ),
    "reconcile": Scenario(
        much_to_repair, World.reconcile, {"job1": "completed", "job2": "completed", "job3": "running"}
    ),
    "an end that leaves a warm pool": Scenario(one_completed, job1_is_heard_of, ONE_LEFT, policy=WARM),
    "reuse a warm pool": Scenario(warm_pool_wanted, World.schedule, TAKEN_OVER, policy=WARM),
    "settle a reuse": Scenario(warm_pool_taken, lambda world: world.tell("job3"), TAKEN_OVER, policy=WARM),
    "release a warm pool": Scenario(warm_pool_left, World.schedule, ONE_LEFT, policy=WARM),
    "release a warm pool for a wider job": Scenario(
        warm_pool_in_the_way,
        World.schedule,
        {"job1": "completed", "job2": "completed", "job3": "running"},
        policy=WARM,
    ),
    "learn a limit": Scenario(account_allows_one, World.schedule, {"job1": "running", "job2": "pending"}),
    "forget a limit": Scenario(
        account_allows_more_by_now, World.wake, {"job1": "running", "job2": "running"}
    ),
    "narrow a choice": Scenario(
        a_choice_was_made, job1_is_heard_of, {"job1": "running", "job2": "running"}, policy=TWO_TYPES
    ),
    "bring a back-off home": Scenario(backs_off, World.wake, {"job1": "running"}),
    "drop a hold": Scenario(
        preemptor_left, World.wake, {"job1": "running", "job2": "running", "job4": "stopped"}
    ),
    "lower the capacity": Scenario(
        three_want_two, lower_the_capacity, THREE_OF_TWO, again=lower_the_capacity, capacity=of(2)
    ),
    "a new priority": Scenario(
        three_want_two,
        raise_the_priority,
        {"job1": "preempted", "job2": "running", "job3": "running"},
        again=raise_the_priority,
    ),
    "hold": Scenario(three_want_two, hold, THREE_OF_TWO | {"job3": "held"}, again=hold),
    "release": Scenario(one_is_held, release, THREE_OF_TWO, again=release),
    "a new order": Scenario(the_order_changes, World.schedule, THREE_OF_TWO),
}


MINUTES = 6
"""Rounds of the reconciler within which everything must be good again."""


def comes_to_rest(world: World, scenario: Scenario) -> dict[str, str]:
    """SageMaker finishes what it was told to stop; no event of it arrives; minutes pass."""
    states: dict[str, str] = {}
    for _ in range(MINUTES):
        for name, job in world.sagemaker.live().items():
            if job.status == "Stopping":
                world.sagemaker.end(name, "Stopped")
        world.a_minute_passes()
        states = {name: world.job(name).state.value for name in scenario.ends}
        rows = {pool.training_job_name for pool in world.wiring.reader.pool_state("main").warm_pools}
        settled = rows == set(world.sagemaker.available())
        watched = {idle_alarm(name) for name in scenario.watched}
        moved = all(world.job(name).spot.left for name in scenario.on_demand)
        if states == scenario.ends and settled and moved and alarms(world) == watched:
            return states
    unsettled = {**states, "warm pools or alarms": "were not settled"}
    return unsettled if states == scenario.ends else states
