"""The query parameter ``month``."""

import re

from trainmaster.api.request_context import Visit
from trainmaster.core.costs.ledger import month_of
from trainmaster.core.errors import FieldError
from trainmaster.core.request_errors import invalid, quoted

_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


def month_asked(visit: Visit, given: str | None) -> str:
    """``YYYY-MM``, UTC; without one this month. Raises InvalidRequestError."""
    month = given or month_of(visit.outside.clock())
    if _MONTH.fullmatch(month):
        return month
    message = f"{quoted(month)} is no month"
    raise invalid([FieldError(field="query.month", message=message, hint="write it like 2026-11")])
