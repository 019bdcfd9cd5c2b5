"""What callers see of starts that pause because AWS refuses them."""

from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

from trainmaster.api.views import instant_text
from trainmaster.core.planning.refusal_records import RoleStarts

View: TypeAlias = dict[str, Any]


def pause_views(roles: Iterable[RoleStarts], *, teams: Collection[str] | None) -> list[View]:
    """Show each pause of a pool, the longest first.

    AWS's words name jobs, keys and subnets of the team whose start it refused; others read the code alone.

    Args:
        roles: Records of the pool.
        teams: The caller's; None: an admin, who reads everything.
    """
    views: list[tuple[str, View]] = []
    for role in roles:
        pause = role.pause
        if pause is None:
            continue
        may_read = teams is None or pause.team in teams
        since = instant_text(pause.since)
        view = {
            "role_arn": role.role_arn if may_read else None,
            "launcher_role": role.launcher if may_read else None,
            "since": since,
            "code": pause.code,
            "message": pause.message if may_read else None,
            "next_probe_at": instant_text(pause.next_probe_at),
        }
        views.append((f"{since}#{role.role_arn}", view))
    return [view for _, view in sorted(views, key=lambda each: each[0])]
