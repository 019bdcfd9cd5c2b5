"""The notice that most of a team's month is spent."""

from trainmaster.core.costs.pricing import usd_text
from trainmaster.core.outbox.messages import Notice, NoticeKind


def budget_notice(team: str, *, month: str, spent_cents: int, limit_cents: int) -> Notice:
    return Notice(
        kind=NoticeKind.BUDGET_WARNING,
        team=team,
        what=f"Team {team} has spent {usd_text(spent_cents)} of its {usd_text(limit_cents)} for {month}.",
        why="That is 80 % or more. A job starts only if its worst case is covered by what is left.",
        todo=f"`trainmaster usage --team {team}` shows what it was spent on.",
        undo="An admin can raise `budget.usd_per_month` of the team.",
        detail={"month": month, "spent_cents": spent_cents, "budget_cents": limit_cents},
    )
