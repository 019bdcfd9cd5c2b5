"""Why an attempt starts in its shape, where measured work per dollar has ordered the shapes."""

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Shape, Vector
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.shape_notes import shape_note

from tests.builders import A, B, claimed, job, of

MEASURED = "4 x small on spot: 1.31x the tokens per USD of 1 x large, measured on 4 runs"
FIRST, SECOND = Shape(vector=of(4)), Shape(vector=of(1, B))


def note_of(shape: Shape, measured: str | None) -> Reason | None:
    return shape_note(claimed(job(shapes=(FIRST, SECOND), measured=measured), shape=shape))


def test_a_start_in_the_first_shape_has_the_ratio_and_the_runs() -> None:
    assert note_of(FIRST, MEASURED) == Reason(code=ReasonCode.CHEAPEST, message=MEASURED)


def test_a_start_in_a_later_shape_says_that_the_first_could_not_start() -> None:
    message = f"{B}=1 is number 2 of its shapes, and none before it could start; {MEASURED}"
    assert note_of(SECOND, MEASURED) == Reason(code=ReasonCode.CHEAPEST, message=message)


@pytest.mark.parametrize(
    ("vector", "measured"),
    [
        pytest.param(of(4), None, id="its author listed the shapes"),
        pytest.param(of(2, A), MEASURED, id="a shape that was not ordered"),
    ],
)
def test_other_starts_say_nothing_of_it(vector: Vector, measured: str | None) -> None:
    assert note_of(Shape(vector=vector), measured) is None
