"""How long between two looks, and what a watch does when the API is silent."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from trainmaster_client.errors import (
    ApiUnreachableError,
    GatewayRefusedError,
    NotFoundError,
    Problem,
    TooManyRequestsError,
)
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.look_intervals import poll_seconds
from trainmaster_client.jobs.progress import SILENCE_SECONDS, Watch


@pytest.mark.parametrize(
    ("quiet", "first", "expected"),
    [
        pytest.param(0, 1, 1, id="the first pause is the one asked for"),
        pytest.param(20, 1, 1, id="it stays while there was news not long ago"),
        pytest.param(100, 1, 5, id="then it grows with the silence"),
        pytest.param(86_400, 1, 10, id="up to ten seconds"),
        pytest.param(0, 0.01, 0.01, id="short for tests"),
        pytest.param(86_400, 30, 30, id="longer only when asked for"),
    ],
)
def test_the_pause_grows_with_the_time_without_news(quiet: float, first: float, expected: float) -> None:
    assert poll_seconds(quiet, first=first) == expected


@dataclass
class World:
    """A clock that only sleeping moves, and looks that come from a script; the last one repeats."""

    script: list[JobView | Exception]
    now: float = 0.0
    pauses: list[float] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def look(self) -> JobView:
        seen = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(seen, Exception):
            raise seen
        return seen

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def watch(self, timeout: float | None = None) -> JobView:
        return Watch(
            look=self.look,
            say=self.said.append,
            timeout=timeout,
            sleep=self.sleep,
            monotonic=lambda: self.now,
            chance=lambda: 0.0,
        ).until_final()


AWAY = ApiUnreachableError("https://api/prod", why="connection refused.")
DONE = job_view({"state": "completed"})


def waiting(position: int) -> JobView:
    return job_view({"state": "pending", "pool": "p5", "position": position})


@pytest.fixture
def positions() -> Iterator[JobView]:
    return (waiting(position) for position in (3, 3, 3, 2, 2, 1))


def test_a_line_is_said_when_something_changed_and_only_then(positions: Iterator[JobView]) -> None:
    world = World([*positions, DONE])
    assert world.watch() is DONE
    assert world.said == [f"Waiting, position {position} in pool p5" for position in (3, 2, 1)]


def test_a_long_wait_is_looked_at_every_ten_seconds_and_news_makes_it_short_again() -> None:
    world = World([*[waiting(2)] * 100, waiting(1), waiting(1), DONE])
    world.watch()
    assert world.pauses[0] == 1
    assert world.pauses[98] == 10
    assert world.pauses[100] == 1


def test_a_network_that_is_away_for_a_while_is_mentioned_once_and_does_not_end_the_wait() -> None:
    world = World([waiting(1), AWAY, AWAY, AWAY, DONE])
    assert world.watch() is DONE
    assert len(world.said) == 2
    assert world.said[1].endswith("Still trying; the job continues without this connection.")


def test_a_team_that_reads_too_often_for_a_while_does_not_end_the_wait() -> None:
    limited = TooManyRequestsError(Problem(status=429, title="Too many requests", detail="in this minute"))
    world = World([waiting(1), limited, limited, DONE])
    assert world.watch() is DONE


def test_after_a_quarter_of_an_hour_of_silence_the_watch_gives_up() -> None:
    world = World([waiting(1), AWAY])
    with pytest.raises(ApiUnreachableError):
        world.watch()
    assert SILENCE_SECONDS <= world.now <= SILENCE_SECONDS + 20


def expired(*, may_be_renewed: bool = True) -> GatewayRefusedError:
    error = GatewayRefusedError(
        Problem(status=403, title="The API refused", detail="The security token is expired"),
        Trouble.EXPIRED_CREDENTIALS,
    )
    error.may_be_renewed = may_be_renewed
    return error


def test_O15_a_login_that_ends_is_said_once_and_the_wait_continues_with_the_next_one() -> None:
    world = World([waiting(1), *[expired()] * 5, waiting(1), expired(), DONE])
    assert world.watch() is DONE
    first, told, told_again = world.said
    assert first.startswith("Waiting")
    assert (
        told
        == told_again
        == (
            "The AWS credentials have expired. To log in again: aws sso login, or as you got these; restart "
            "what was given keys of its own. The job continues, and so does this wait with new ones."
        )
    )


def test_O15_a_wait_without_a_new_login_ends_after_a_quarter_of_an_hour() -> None:
    world = World([waiting(1), expired()])
    with pytest.raises(GatewayRefusedError):
        world.watch()
    assert len(world.said) == 2
    assert SILENCE_SECONDS <= world.now <= SILENCE_SECONDS + 20


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([expired()], id="at the first look nobody has logged in"),
        pytest.param([waiting(1), expired(may_be_renewed=False)], id="no login reaches a program's keys"),
    ],
)
def test_O15_credentials_that_nothing_renews_end_the_wait_at_once(script: list[JobView | Exception]) -> None:
    world = World(script)
    with pytest.raises(GatewayRefusedError, match="To log in again"):
        world.watch()
    assert sum(world.pauses) <= 1


def test_a_refusal_ends_the_watch_at_once() -> None:
    world = World([NotFoundError(Problem(status=404, title="Not found", detail="gone"))])
    with pytest.raises(NotFoundError):
        world.watch()
    assert world.pauses == []


def test_a_time_limit_returns_the_last_view() -> None:
    world = World([waiting(1)])
    assert world.watch(timeout=30).state == "pending"
    assert 30 <= world.now <= 32


def test_an_api_that_answers_slower_than_the_interval_is_not_asked_without_a_pause() -> None:
    world = World([*[waiting(1)] * 20, AssertionError("asked without a pause")])
    watch = Watch(
        look=world.look,
        say=world.said.append,
        first_poll=2.0,
        age=lambda: 30.0,  # seconds that each answer took
        timeout=10.0,
        sleep=world.sleep,
        monotonic=lambda: world.now,
        chance=lambda: 0.0,
    )
    watch.until_final()
    assert world.pauses == [1.0] * 10
