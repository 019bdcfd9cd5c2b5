"""States, steps and the table of ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, CapacityType, parse_vector, vector_text
from trainmaster.core.jobs.model import FINAL, LIVE, WAITING, JobState, NotLiveError
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.states import TRANSITIONS, IllegalTransitionError

from tests.builders import NOON, job, live_job, minutes, seen
from tests.ends import end_of

S = JobState


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(JobState)


def test_final_states_are_never_left() -> None:
    assert all(not TRANSITIONS[state] for state in FINAL)


def test_every_state_but_the_first_can_be_reached() -> None:
    assert set(JobState) - set().union(*TRANSITIONS.values()) == set()


def test_waiting_live_and_final_do_not_overlap_and_leave_only_held() -> None:
    assert not WAITING & LIVE
    assert not LIVE & FINAL
    assert set(JobState) - WAITING - LIVE - FINAL == {S.HELD}


def test_an_illegal_step_is_our_own_mistake() -> None:
    with pytest.raises(IllegalTransitionError, match="completed to running"):
        job(state=S.COMPLETED).moved_to(S.RUNNING)


CANCEL = Reason(code=ReasonCode.STOPPED_BY_USER, message="ada asked")


@pytest.mark.parametrize(
    ("state", "news", "becomes", "code"),
    [
        pytest.param(
            S.RUNNING, seen(status="Completed", secondary="Completed"), S.COMPLETED, "completed", id="done"
        ),
        pytest.param(
            S.PREEMPTING,
            seen(status="Completed", secondary="Completed"),
            S.COMPLETED,
            "completed",
            id="done in the grace time of its preemption",
        ),
        pytest.param(
            S.STOPPING,
            seen(status="Completed", secondary="Completed"),
            S.COMPLETED,
            "completed",
            id="done before the stop",
        ),
        pytest.param(
            S.STOPPING,
            seen(status="Stopped", secondary="MaxRuntimeExceeded"),
            S.STOPPED,
            "max-runtime",
            id="out of time while it was being stopped",
        ),
        pytest.param(
            S.RUNNING,
            seen(status="Stopped", secondary="MaxRuntimeExceeded"),
            S.STOPPED,
            "max-runtime",
            id="out of time",
        ),
        pytest.param(
            S.RUNNING,
            seen(status="Stopped", secondary="MaxWaitTimeExceeded"),
            S.STOPPED,
            "max-wait",
            id="spot waited",
        ),
        pytest.param(
            S.STARTING,
            seen(status="Failed", secondary="Failed", failure_reason="CapacityError: Unable to provision"),
            S.PENDING,
            "capacity",
            id="no instances to be had: not charged",
        ),
        pytest.param(
            S.PREEMPTING,
            seen(status="Failed", secondary="Failed", failure_reason="CapacityError: Unable to provision"),
            S.PENDING,
            "capacity",
            id="no instances to be had while preempted",
        ),
        pytest.param(
            S.RUNNING,
            seen(status="Stopped", secondary="Stopped", max_pending=minutes(30), ended_at=NOON + minutes(30)),
            S.PENDING,
            "capacity",
            id="the pending time ran out: not charged",
        ),
        pytest.param(
            S.RUNNING,
            seen(
                status="Failed", secondary="Failed", failure_reason="AlgorithmError: no CapacityError: here"
            ),
            S.FAILED,
            "unknown",
            id="failed by itself, whatever words it uses",
        ),
        pytest.param(
            S.PREEMPTING,
            seen(status="Failed", secondary="Failed"),
            S.FAILED,
            "unknown",
            id="failed while preempted",
        ),
        pytest.param(
            S.STOPPING,
            seen(status="Failed", secondary="Failed"),
            S.STOPPED,
            "stopped-by-user",
            id="failed while stopped",
        ),
        pytest.param(
            S.PREEMPTING,
            seen(status="Stopped", secondary="Stopped"),
            S.PREEMPTED,
            "preemption",
            id="made room",
        ),
        pytest.param(
            S.STOPPING,
            seen(status="Stopped", secondary="Stopped"),
            S.STOPPED,
            "stopped-by-user",
            id="stopped by its user",
        ),
        pytest.param(
            S.RUNNING,
            seen(status="Stopped", secondary="Stopped"),
            S.STOPPED,
            "stopped-outside",
            id="stopped by a stranger",
        ),
        pytest.param(S.RUNNING, None, S.FAILED, "deleted-outside", id="SageMaker does not know it any more"),
    ],
)
def test_the_table_of_ends(state: JobState, news: Observation | None, becomes: JobState, code: str) -> None:
    reason = CANCEL if state is S.STOPPING else None
    end = end_of(live_job(state=state, reason=reason), news)
    assert end is not None
    assert (end.becomes, end.reason.code) == (becomes, code)
    assert end.becomes in TRANSITIONS[state]


@pytest.mark.parametrize("status", ["InProgress", "Stopping", "Deleting", "SomethingNew"])
def test_what_is_not_over_is_not_an_end(status: str) -> None:
    assert end_of(live_job(), seen(status=status, secondary="Restarting")) is None


vectors = st.dictionaries(
    st.builds(
        Capacity,
        st.from_regex(r"ml\.[a-z0-9-]{1,6}\.[a-z0-9-]{1,8}", fullmatch=True),
        st.sampled_from(CapacityType),
    ),
    st.integers(1, 1000),
    max_size=5,
)


@given(vectors)
def test_a_vector_survives_its_text(vector: dict[Capacity, int]) -> None:
    assert parse_vector(vector_text(vector)) == vector


def test_a_job_that_holds_no_instances_has_no_live_attempt() -> None:
    with pytest.raises(NotLiveError, match="train-1 has no live attempt"):
        _ = job().live_attempt
    one = live_job()
    assert one.live_attempt == one.live
