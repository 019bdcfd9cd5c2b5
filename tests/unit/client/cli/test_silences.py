"""Which errors pass by themselves, and a connection whose credentials are looked for again."""

from typing import cast

import pytest
from trainmaster_client.api import ApiClient
from trainmaster_client.cli.silences import Connection, is_passing
from trainmaster_client.errors import (
    ApiFailedError,
    ApiUnreachableError,
    CredentialsError,
    ForbiddenError,
    GatewayRefusedError,
    InvalidRequestError,
    NotFoundError,
    Problem,
    TooManyRequestsError,
    TrainmasterClientError,
)
from trainmaster_client.errors.troubles import Trouble


def problem(status: int) -> Problem:
    return Problem(status=status, title="No", detail="no")


EXPIRED = GatewayRefusedError(problem(403), Trouble.EXPIRED_CREDENTIALS)
PASSING = [
    ApiUnreachableError("https://api", why="no route."),
    ApiFailedError(problem(503)),
    TooManyRequestsError(problem(429)),
    CredentialsError("none."),
    EXPIRED,
]
LASTING = [
    ForbiddenError(problem(403)),
    GatewayRefusedError(problem(403), Trouble.WRONG_STAGE),
    NotFoundError(problem(404)),
    InvalidRequestError(problem(400)),
]


@pytest.mark.parametrize("error", PASSING)
def test_what_may_be_answered_later_is_waited_for(error: TrainmasterClientError) -> None:
    assert is_passing(error)


@pytest.mark.parametrize("error", LASTING)
def test_what_will_be_refused_again_is_not(error: TrainmasterClientError) -> None:
    assert not is_passing(error)


def test_a_connection_is_made_once_and_again_only_for_new_credentials() -> None:
    made: list[object] = []

    def make() -> ApiClient:
        made.append(object())
        return cast(ApiClient, made[-1])

    connection = Connection(make)
    assert made == []
    assert connection.api is connection.api
    connection.lost(PASSING[0])
    assert connection.api is made[0]
    connection.lost(EXPIRED)
    assert connection.api is made[1]
