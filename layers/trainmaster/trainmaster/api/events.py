"""GET /events: the notices of the caller's teams, for callers without a rule of their own for them."""

from http import HTTPStatus

from trainmaster.api.history_query import Listing, listing, since
from trainmaster.api.known_names import one_of, refused
from trainmaster.api.paging import Room
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import View, instant_text
from trainmaster.core.errors import FieldError, ForbiddenError, quoted
from trainmaster.core.history.past_records import PastEvent
from trainmaster.core.outbox.messages import NoticeKind
from trainmaster.core.outbox.texts.refusals import OPERATORS
from trainmaster.core.policy import DEFAULT_TEAM

BATCH = 100
MOST_LOOKED_AT = 1000
"""Events read for one page; on a day that is nearly all other teams', pages may be short."""


def show_events(context: RequestContext) -> Answer:
    """List the events, the newest last."""
    given = context.call.parameters("since", "team", "kind", "next_token")
    teams = _teams(context, given.get("team"))
    kind = _kind(given.get("kind"))
    of_list = listing(context, "events", given, since(given, now=context.outside.clock()))
    views, end = _page(context, of_list, teams, kind)
    body = {"events": views, "next_token": of_list.token(end)}
    return Answer(status=HTTPStatus.OK, body=body)


def _page(
    context: RequestContext, of_list: Listing, teams: frozenset[str] | None, kind: str | None
) -> tuple[list[View], tuple[str, ...] | None]:
    """Read one page, and return the position behind which the next begins; None after the last."""
    views, room, looked = list[View](), Room(), 0
    position = (of_list.order[0], of_list.order[1]) if of_list.order else None
    while True:
        events, position = context.outside.reader.past_events(of_list.window, after=position, limit=BATCH)
        looked += BATCH
        for event in events:
            if (teams is None or event.team in teams) and kind in (None, event.kind):
                views.append(event_view(event))
                room.takes(views[-1])
        if position is None or looked >= MOST_LOOKED_AT or room.is_full or not context.has_time:
            return views, position


def event_view(event: PastEvent) -> View:
    return {
        "at": instant_text(event.at),
        "kind": event.kind,
        "team": event.team,
        "job": event.job,
        "detail": event.detail,
    }


def _teams(context: RequestContext, team: str | None) -> frozenset[str] | None:
    """Return the teams to show; None stands for all.

    Raises InvalidRequestError for an unknown team, ForbiddenError for one that is not the caller's.
    """
    if team is None:
        return None if context.is_admin else frozenset(context.teams)
    known = [team.name for team in context.policy.teams] or [DEFAULT_TEAM]
    if team in context.teams or (context.is_admin and team in (*known, OPERATORS)):
        return frozenset({team})
    if team in known:
        hint = f"use one of: {', '.join(context.teams)}"
        error = FieldError(field="query.team", message="is not one of the caller's teams", hint=hint)
        raise ForbiddenError("the caller is not in this team", errors=[error])
    shown = [*known, OPERATORS] if context.is_admin else list(context.teams)
    raise refused("team", f"there is no team {quoted(team)}", one_of(team, shown, "the caller is in no team"))


def _kind(kind: str | None) -> str | None:
    known = [kind.value for kind in NoticeKind]
    if kind is None or kind in known:
        return kind
    raise refused("kind", f"there is no kind of event {quoted(kind)}", one_of(kind, known))
