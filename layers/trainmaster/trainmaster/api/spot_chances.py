"""What is known of the spot instances that a job asks for."""

from datetime import UTC

from trainmaster.api.request_context import Visit
from trainmaster.api.views import View
from trainmaster.core.costs.spot_record import record_of
from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.jobs.model import Job


def spot_chances(job: Job, visit: Visit) -> tuple[View, ...]:
    """For each spot shape how often its instances were taken away lately; none where nobody ran on them."""
    return tuple(
        _chances(job, capacity, count, visit)
        for shape in job.shapes
        if shape.capacity_type is CapacityType.SPOT
        for capacity, count in sorted(shape.vector.items())
    )


def _chances(job: Job, capacity: Capacity, instances: int, visit: Visit) -> View:
    """Rates are for as long as the job may run."""
    days = visit.outside.reader.spot_days(capacity.instance_type)
    record = record_of(days, today=visit.outside.clock().astimezone(UTC).date())
    expected = record.expected(instances=instances, runtime=job.spec.max_runtime)
    return {
        "instance_type": capacity.instance_type,
        "instances": instances,
        "instance_hours": round(record.instance_hours, 2),
        "interruptions": round(record.interruptions, 2),
        "interruptions_per_instance_hour": _rounded(record.per_instance_hour),
        "expected_interruptions": _rounded(expected),
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)
