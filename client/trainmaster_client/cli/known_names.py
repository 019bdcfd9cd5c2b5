"""Names of states, pools and teams: which there are, the nearest to a mistyped one, and for the tab key."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from trainmaster.core.jobs.model import JobState

from trainmaster_client.cli.connection import CommandApi, completed
from trainmaster_client.errors import InvalidArgumentError, TrainmasterClientError
from trainmaster_client.http.answers import printable

SUGGESTIONS = 3
_LEAST_LIKENESS = 0.5
"""Least ratio of difflib: half of a short name is right."""
_MARGIN = 0.2

Pools = Sequence[Mapping[str, Any]]
"""Pools as in ``GET /pools``."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the nearest names, as in ``p5 or p4``; empty if none is near.

    Names much less alike than the best are left out.
    """
    likeness = {
        candidate: SequenceMatcher(a=name.lower(), b=candidate.lower()).ratio() for candidate in known
    }
    best = max(likeness.values(), default=0.0)
    near = [
        candidate for candidate, ratio in likeness.items() if ratio >= max(_LEAST_LIKENESS, best - _MARGIN)
    ]
    return " or ".join(sorted(near, key=lambda candidate: -likeness[candidate])[:SUGGESTIONS])


def require_state(state: str | None) -> None:
    """Refuse what is not a state of jobs, naming the nearest.

    Raises:
        InvalidArgumentError: ``state`` is given and is not one.
    """
    states = [known.value for known in JobState]
    if state is not None and state not in states:
        near = nearest(state, states)
        hint = f"did you mean {near}?" if near else f"use one of {', '.join(states)}."
        raise InvalidArgumentError(f"--state: {state!r} is not a state;", hint=hint)


def pool_names(pools: Pools) -> list[str]:
    return [printable(pool.get("name")) for pool in pools if pool.get("name")]


def team_names(pools: Pools) -> list[str]:
    """Return the teams that use a pool or have a quota in one."""
    teams = (team for pool in pools for team in pool.get("teams") or () if isinstance(team, Mapping))
    return list(dict.fromkeys(printable(team.get("name")) for team in teams if team.get("name")))


def complete_state(incomplete: str) -> list[str]:
    return [state.value for state in JobState if state.value.startswith(incomplete)]


def complete_pool(incomplete: str) -> list[str]:
    return completed(incomplete, _of_pools(pool_names))


def complete_team(incomplete: str) -> list[str]:
    """Complete names of teams, also the caller's own, which may use nothing yet."""
    return completed(incomplete, lambda api: [*_own_teams(api), *_of_pools(team_names)(api)])


def _of_pools(names: Callable[[Pools], list[str]]) -> Callable[[CommandApi], list[str]]:
    return lambda api: names(api.pools().get("pools") or ())


def _own_teams(api: CommandApi) -> list[str]:
    try:
        return [printable(team["name"]) for team in api.me().get("teams") or ()]
    except (TrainmasterClientError, KeyError, TypeError):  # an older stack has no such route
        return []
