"""Reasons that name a reservation: whose the instances are, how many, and until when."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Vector, vector_text
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.wait_reasons import minute_text
from trainmaster.core.policy.reservation import Reservation


def past_begin(vector: Vector, *, until: datetime, reservation: Reservation) -> Reason:
    """Say that it would fit now, but may hold on to its instances when they are another team's."""
    (capacity,) = vector
    message = (
        f"needs {vector_text(vector)} and may run until {minute_text(until)}; from"
        f" {minute_text(reservation.from_)} on {_keeps(reservation, [capacity])}: before that it starts only"
        " with checkpoints or a shorter MaxRuntimeInSeconds"
    )
    return Reason(code=ReasonCode.WINDOW, message=message)


def kept_for_team(vector: Vector, have: Mapping[Capacity, int], *, reservation: Reservation) -> Reason:
    """Say that a reservation of another team leaves too few instances, and until when.

    Args:
        vector: Instances that the job needs.
        have: Instances that are left for its team.
        reservation: The last to end of those that keep them.
    """
    left = {capacity: max(have.get(capacity, 0), 0) for capacity in vector}
    message = f"needs {vector_text(vector)}, free {vector_text(left)}: {_keeps(reservation, vector)}"
    return Reason(code=ReasonCode.WINDOW, message=message)


def reserved_text(reservation: Reservation, vector: Vector) -> str:
    """Say why a running job is stopped for a reservation of another team."""
    return _keeps(reservation, vector)


def _keeps(reservation: Reservation, capacities: Iterable[Capacity]) -> str:
    """Name what a reservation keeps of these types, for whom and until when."""
    kept = {
        capacity: reservation.instances[capacity.instance_type]
        for capacity in capacities
        if capacity.is_on_demand and capacity.instance_type in reservation.instances
    }
    return (
        f"reservation {reservation.name} keeps {vector_text(kept)} for team {reservation.team}"
        f" until {minute_text(reservation.to)}"
    )
