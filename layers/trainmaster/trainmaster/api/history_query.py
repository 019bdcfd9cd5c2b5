"""Read which part of the history a call asks for: a period, and where a list continues."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.api.known_names import instant, refused
from trainmaster.api.paging import Mark, Seal
from trainmaster.api.request_context import RequestContext
from trainmaster.core.history.past_records import Window

LONGEST = timedelta(days=31)
USUAL = timedelta(hours=24)
JUST_NOW = timedelta(seconds=1)
"""Added to the end of a list up to now, so that it includes what happens at this instant."""


def period(given: Mapping[str, str], *, now: datetime) -> Window:
    """Read ``from`` and ``to``; the default is the last 24 hours, and the end is never after now.

    Raises InvalidRequestError.
    """
    until = min(instant("to", given["to"]), now) if "to" in given else now
    since = instant("from", given["from"]) if "from" in given else until - USUAL
    if since >= until:
        end = "to" if "to" in given and until < now else "now"
        raise refused("from", f"is not before {end}", "ask for a period that has begun")
    if until - since > LONGEST:
        message = f"the period has more than {LONGEST.days} days"
        raise refused("from", message, "ask for a shorter one; several calls give a longer one")
    return Window(since=since, until=until)


def list_period(given: Mapping[str, str], *, now: datetime) -> Window:
    """Read the period of a list of events, which may include this instant. Raises InvalidRequestError."""
    window = period(given, now=now)
    if window.until < now:
        return window
    return Window(since=window.since, until=now + JUST_NOW)


def since(given: Mapping[str, str], *, now: datetime) -> Window:
    """Read ``since``, by default 24 hours ago; the period ends now. Raises InvalidRequestError."""
    begins = instant("since", given["since"]) if "since" in given else now - USUAL
    if begins > now:
        raise refused("since", "is in the future", "ask since an instant that is over")
    if now - begins > LONGEST:
        raise refused("since", f"is more than {LONGEST.days} days ago", "ask since a later instant")
    return Window(since=begins, until=now + JUST_NOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Describes one list over several pages; its period stays that of the first page."""

    seal: Seal
    window: Window
    order: tuple[str, ...] | None
    """Position of the entry behind which the list continues; None on the first page."""

    def token(self, order: tuple[str, ...] | None) -> str | None:
        """Seal the position of the next page; None at the end of the list."""
        if order is None:
            return None
        bounds = (self.window.since.isoformat(), self.window.until.isoformat())
        return self.seal.token(Mark(section="history", order=(*bounds, *order), counted=0))


def listing(context: RequestContext, name: str, given: Mapping[str, str], window: Window) -> Listing:
    """Read a listing; ``window`` is for a first page. Raises InvalidRequestError for a foreign token."""
    filters = sorted((key, value) for key, value in given.items() if key != "next_token")
    bound = json.dumps([name, context.is_admin, context.teams, filters])
    seal = Seal(key=bytes.fromhex(context.stored.seal_key), bound=bound)
    if "next_token" not in given:
        return Listing(seal=seal, window=window, order=None)
    begins, ends, *order = (str(part) for part in seal.mark(given["next_token"]).order)
    first = Window(since=datetime.fromisoformat(begins), until=datetime.fromisoformat(ends))
    return Listing(seal=seal, window=first, order=tuple(order))
