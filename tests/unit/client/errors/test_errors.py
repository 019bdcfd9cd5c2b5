"""Errors between the processes of a pool: the parent gets what the child raised."""

import pickle

import pytest
from trainmaster_client.errors import (
    ApiUnreachableError,
    FieldProblem,
    PolicyViolationError,
    Problem,
    TrainmasterClientError,
)

VIOLATION = Problem(
    status=422,
    title="Not allowed by the policy",
    detail="1 violation",
    errors=(FieldProblem(field="ResourceConfig.InstanceCount", message="is 9", hint="at most 2"),),
)


@pytest.mark.parametrize(
    "error",
    [ApiUnreachableError("https://api/prod", why="connection refused."), PolicyViolationError(VIOLATION)],
)
def test_an_error_says_the_same_in_another_process(error: TrainmasterClientError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert (str(found), vars(found)) == (str(error), vars(error))
