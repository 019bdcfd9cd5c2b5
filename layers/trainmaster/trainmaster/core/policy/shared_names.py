"""Names that several parts of a policy share: each pool and team has its own, and each type one pool."""

from collections.abc import Iterable

from trainmaster.core.policy.findings import Location, nearest, shown
from trainmaster.core.policy.pool_policy import PoolPolicy

DEFAULT_TEAM = "default"
"""Everybody's team as long as the policy has no teams."""


def refuse_repeated_names(names: Iterable[str], at: Location) -> None:
    """Note each name that an earlier item of the list has; names that could not be read are empty."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index and name:
            message = f"{at.item(first[name]).path} already has the name {shown(name)}"
            at.item(index).below("name").refuse(message, "give each its own name")


def refuse_shared_types(pools: tuple[PoolPolicy, ...], at: Location) -> None:
    """A type belongs to exactly one pool, or a job could not tell which one it waits in."""
    owner: dict[str, int] = {}
    for index, pool in enumerate(pools):
        for key_, capacity in (("capacity", pool.capacity), ("spot_capacity", pool.spot_capacity)):
            for instance_type in capacity:
                first = owner.setdefault(instance_type, index)
                if first != index:
                    message = f"already belongs to {at.item(first).path}"
                    place = at.item(index).below(key_).below(instance_type)
                    place.refuse(message, "leave the type in one pool")


def check_teams(named: Iterable[str], teams: list[str], at: Location) -> None:
    """A quota of a team that nobody is in keeps instances for nobody, and a share is nobody's."""
    for team in named:
        if teams and team not in teams:
            known = f"teams of the policy: {', '.join(teams)}"
            at.below(team).refuse(f"there is no team {shown(team)}", nearest(team, teams) or known)
        elif not teams and team != DEFAULT_TEAM:
            message = f"team {shown(team)} has no members: without teams every caller is in {DEFAULT_TEAM}"
            at.below(team).warn(message, "write the teams")
