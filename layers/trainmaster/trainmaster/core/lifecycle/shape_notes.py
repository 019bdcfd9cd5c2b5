"""Why an attempt starts in its shape, for the history: where measured work per dollar has ordered them."""

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import vector_text
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode


def shape_note(job: Job) -> Reason | None:
    """Return why the live attempt starts in its shape; None unless measured work per dollar decided that."""
    spec, vector = job.spec, job.live_attempt.vector
    vectors = [shape.vector for shape in spec.shapes]
    if spec.measured is None or vector not in vectors:
        return None
    place = vectors.index(vector) + 1
    if place == 1:
        return Reason(code=ReasonCode.CHEAPEST, message=spec.measured)
    message = f"{vector_text(vector)} is number {place} of its shapes, and none before it could start;"
    return Reason(code=ReasonCode.CHEAPEST, message=f"{message} {spec.measured}")
