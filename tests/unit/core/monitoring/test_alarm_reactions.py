"""What the reading of an alarm makes of a job."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.monitoring import alarm_reactions
from trainmaster.core.monitoring.alarms import AlarmKind, AlarmReading, AlarmState, Wanted
from trainmaster.core.policy.governance import Governing, Idle, Reaction, Utilization, Watch

from tests.builders import NOON, attempt, changed, live_job, minutes

WATCH = Watch(idle=Idle(), utilization=Utilization())
EARLIER = NOON - minutes(12)
DUE = NOON + minutes(10)


def trains(*, state: JobState = JobState.RUNNING, **live: Any) -> Job:
    values: dict[str, Any] = {"training_since": NOON - minutes(60), "secondary_status": "Training"}
    return live_job(state=state, live=attempt(**values | live))


def alarm(at: datetime = EARLIER) -> AlarmReading:
    return AlarmReading(state=AlarmState.ALARM, since=at)


OK = AlarmReading(state=AlarmState.OK, since=EARLIER)
NO_DATA = AlarmReading(state=AlarmState.INSUFFICIENT_DATA, since=EARLIER)


def heard(
    job: Job, reading: AlarmReading | None, watch: Watch = WATCH, kind: AlarmKind = AlarmKind.IDLE
) -> Attempt:
    after = alarm_reactions.heard(job, kind, reading, watch, now=NOON)
    assert after.live is not None
    return after.live


def acting(then: Reaction) -> Watch:
    return Watch(idle=Idle(then=then), utilization=Utilization(then=then, warn_first=minutes(10)))


def test_an_alarm_warns_and_says_when_the_stop_is_due() -> None:
    live = heard(trains(), alarm())
    assert (live.watch.idle_since, live.watch.stop_due) == (EARLIER, DUE)


def test_the_same_alarm_read_again_puts_nothing_off() -> None:
    warned = trains(idle_since=EARLIER, stop_due=NOON + minutes(3))
    assert alarm_reactions.heard(warned, AlarmKind.IDLE, alarm(), WATCH, now=NOON) == warned


def test_ok_clears_both() -> None:
    live = heard(trains(idle_since=EARLIER, stop_due=DUE), OK)
    assert (live.watch.idle_since, live.watch.stop_due) == (None, None)


def test_an_alarm_that_went_off_anew_warns_anew() -> None:
    """Its OK was lost: since then the GPUs have worked."""
    live = heard(trains(idle_since=EARLIER, stop_due=NOON), alarm(NOON - minutes(1)))
    assert (live.watch.idle_since, live.watch.stop_due) == (NOON - minutes(1), DUE)


def test_no_data_leaves_what_was_known() -> None:
    for job in (trains(), trains(idle_since=EARLIER, stop_due=DUE)):
        assert alarm_reactions.heard(job, AlarmKind.IDLE, NO_DATA, WATCH, now=NOON) == job


def test_an_alarm_that_is_gone_takes_back_what_it_said() -> None:
    assert heard(trains(idle_since=EARLIER, stop_due=DUE), None).watch.idle_since is None


def test_a_policy_that_only_notifies_sets_no_time_of_a_stop() -> None:
    live = heard(trains(), alarm(), acting(Reaction.NOTIFY))
    assert (live.watch.idle_since, live.watch.stop_due) == (EARLIER, None)


def test_a_policy_that_begins_to_stop_jobs_warns_first() -> None:
    live = heard(trains(idle_since=EARLIER), alarm(), acting(Reaction.STOP))
    assert (live.watch.idle_since, live.watch.stop_due) == (EARLIER, DUE)


def test_a_policy_that_stops_no_more_takes_the_time_back() -> None:
    live = heard(trains(idle_since=EARLIER, stop_due=DUE), alarm(), acting(Reaction.NOTIFY))
    assert (live.watch.idle_since, live.watch.stop_due) == (EARLIER, None)


def test_a_policy_that_asks_for_nothing_hears_nothing() -> None:
    assert heard(trains(), alarm(), Watch()).watch.idle_since is None
    assert heard(trains(idle_since=EARLIER, stop_due=DUE), alarm(), Watch()).watch.idle_since is None
    assert heard(trains(), alarm(), Watch(), AlarmKind.UTILIZATION).watch.underused_since is None


def test_an_underused_job_is_marked_and_unmarked_and_nothing_more() -> None:
    live = heard(trains(), alarm(), WATCH, AlarmKind.UTILIZATION)
    assert (live.watch.underused_since, live.watch.idle_since, live.watch.stop_due) == (EARLIER, None, None)
    assert (
        heard(trains(underused_since=EARLIER), OK, WATCH, AlarmKind.UTILIZATION).watch.underused_since is None
    )


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(trains(training_since=None, secondary_status="Downloading"), id="not in Training yet"),
        pytest.param(trains(secondary_status="Uploading"), id="saves its model"),
        pytest.param(trains(secondary_status="Interrupted"), id="a spot instance was taken away"),
        pytest.param(trains(state=JobState.PREEMPTING), id="is preempted"),
        pytest.param(trains(state=JobState.STOPPING), id="is stopped"),
    ],
)
def test_gpus_of_a_job_that_does_not_train_are_nobodys_business(job: Job) -> None:
    for kind in AlarmKind:
        assert alarm_reactions.heard(job, kind, alarm(), WATCH, now=NOON) == job


# ---- the stop


def idle(due: timedelta = timedelta(), **live: Any) -> Job:
    return trains(**{"idle_since": EARLIER, "stop_due": NOON + due} | live)


def stopped(
    job: Job, reading: AlarmReading | None, watch: Watch = WATCH, kind: AlarmKind = AlarmKind.IDLE
) -> tuple[str, str] | None:
    governing = Governing(idle=watch.idle, utilization=watch.utilization)
    after = alarm_reactions.stop_for(job, kind, reading, governing, now=NOON)
    assert after is None or after.reason is not None
    return None if after is None or after.reason is None else (after.state.value, after.reason.code)


def test_an_idle_job_whose_time_is_over_is_stopped_as_the_policy_says() -> None:
    assert stopped(idle(), alarm()) == ("stopping", "idle")
    assert stopped(idle(), alarm(), acting(Reaction.REQUEUE)) == ("preempting", "idle-requeue")
    assert stopped(idle(), alarm(), acting(Reaction.NOTIFY)) is None
    assert stopped(idle(), alarm(), Watch()) is None


def underused(due: timedelta = timedelta(), **live: Any) -> Job:
    return trains(**{"underused_since": EARLIER, "underused_stop_due": NOON + due} | live)


def test_an_underused_job_is_warned_and_stopped_where_the_policy_says_so() -> None:
    kind, stop = AlarmKind.UTILIZATION, acting(Reaction.STOP)
    warned = heard(trains(), alarm(), stop, kind).watch
    assert (warned.underused_since, warned.underused_stop_due) == (EARLIER, DUE)
    assert (warned.idle_since, warned.stop_due) == (None, None)
    assert heard(underused(), OK, stop, kind).watch.underused_stop_due is None
    assert stopped(underused(), alarm(), stop, kind) == ("stopping", "underused")
    again = acting(Reaction.REQUEUE)
    assert stopped(underused(), alarm(), again, kind) == ("preempting", "underused-requeue")
    assert stopped(changed(underused(), idle_requeues=3), alarm(), again, kind) == ("stopping", "underused")


@pytest.mark.parametrize(
    ("job", "reading", "watch"),
    [
        pytest.param(underused(minutes(1)), alarm(), acting(Reaction.STOP), id="a minute is left"),
        pytest.param(underused(), OK, acting(Reaction.STOP), id="its GPUs are used again"),
        pytest.param(underused(), NO_DATA, acting(Reaction.STOP), id="nobody knows"),
        pytest.param(underused(), alarm(NOON), acting(Reaction.STOP), id="a new alarm"),
        pytest.param(underused(), alarm(), acting(Reaction.NOTIFY), id="the policy only notifies now"),
        pytest.param(underused(), alarm(), Watch(idle=Idle()), id="the policy has no utilization any more"),
        pytest.param(idle(), alarm(), acting(Reaction.STOP), id="it was warned of idleness, not of this"),
    ],
)
def test_an_underused_job_is_left_alone(job: Job, reading: AlarmReading, watch: Watch) -> None:
    assert stopped(job, reading, watch, AlarmKind.UTILIZATION) is None


def test_a_job_that_idles_in_each_of_its_attempts_is_stopped_in_the_end() -> None:
    again = acting(Reaction.REQUEUE)
    assert stopped(changed(idle(), idle_requeues=2), alarm(), again) == ("preempting", "idle-requeue")
    assert stopped(changed(idle(), idle_requeues=3), alarm(), again) == ("stopping", "idle")


@pytest.mark.parametrize(
    ("job", "reading"),
    [
        pytest.param(idle(minutes(1)), alarm(), id="a minute is left"),
        pytest.param(idle(), OK, id="its GPUs work again"),
        pytest.param(idle(), NO_DATA, id="nobody knows"),
        pytest.param(idle(), None, id="its alarm is gone"),
        pytest.param(idle(), alarm(NOON), id="it went off again, which was not told yet"),
        pytest.param(trains(), alarm(), id="it was never warned"),
        pytest.param(idle(secondary_status="Uploading"), alarm(), id="it saves its model"),
        pytest.param(
            trains(state=JobState.STOPPING, idle_since=EARLIER, stop_due=NOON), alarm(), id="it stops anyway"
        ),
    ],
)
def test_nobody_else_is(job: Job, reading: AlarmReading | None) -> None:
    assert stopped(job, reading) is None


# ---- the alarms themselves


def test_what_is_known_of_its_alarms_is_kept_with_the_attempt() -> None:
    why = Reason(code=ReasonCode.ALARM_QUOTA, message="CloudWatch takes no more")
    refused = alarm_reactions.refused(trains(guarded="old"), why, now=NOON)
    assert refused.live is not None
    kept = (refused.live.watch.monitored, refused.live.unmonitored, refused.live.watch.monitor_again_at)
    assert kept == (None, why, NOON + minutes(15))
    made = alarm_reactions.monitored(refused, Wanted(hosts=1, gpus=1, digest="new"))
    assert made.live is not None
    assert (made.live.watch.monitored, made.live.unmonitored, made.live.watch.monitor_again_at) == (
        "new",
        None,
        None,
    )
    lost = alarm_reactions.alarms_lost(made)
    assert lost.live is not None
    assert lost.live.watch.monitored is None
