"""Which errors pass by themselves, and a connection whose credentials are looked for again."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from trainmaster_client.api import ApiClient
from trainmaster_client.cli.silences import SLOW, Connection, Freshness, is_passing
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


def test_a_call_that_fails_for_old_credentials_is_followed_by_one_with_new_ones() -> None:
    connection = Connection(lambda: cast(ApiClient, object()))
    first = connection.api

    def refused(_api: ApiClient) -> None:
        raise EXPIRED

    with pytest.raises(type(EXPIRED)):
        connection.ask(refused)
    assert connection.ask(lambda api: api) is not first


NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fresh", "expected"),
    [
        pytest.param(Freshness(answered_at=NOON), "", id="all is well"),
        pytest.param(Freshness(answered_at=NOON, asked_at=NOON + SLOW), "", id="not slow yet"),
        pytest.param(
            Freshness(answered_at=NOON, asked_at=NOON),
            "nothing new since 12:00:00 (9s): no answer for 9s",
            id="slow",
        ),
        pytest.param(
            Freshness(answered_at=NOON, error="no route"),
            "nothing new since 12:00:00 (9s): no route",
            id="failed",
        ),
        pytest.param(Freshness(error="no route"), "no route", id="no answer yet"),
    ],
)
def test_a_picture_says_since_when_nothing_new_came(fresh: Freshness, expected: str) -> None:
    assert fresh.trouble(now=NOON + timedelta(seconds=9), zone=UTC) == expected


def test_an_answer_ends_the_trouble_and_an_error_is_one_line() -> None:
    fresh = Freshness(asked_at=NOON)
    fresh.failed(ValueError("two\n  lines"))
    assert fresh.trouble(now=NOON, zone=UTC) == "two lines"
    fresh.answered(now=NOON)
    assert fresh == Freshness(answered_at=NOON)
