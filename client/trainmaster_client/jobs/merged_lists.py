"""Merge the queue's entries into SageMaker's lists, each once, in the order of the request. Pure.

A page is merged of a page of SageMaker and of all that the queue has. What does not fit is given on the next
page, which the token of this one describes: it is ours, not SageMaker's.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self, TypeAlias

from trainmaster_client.errors import InvalidArgumentError

Summary: TypeAlias = dict[str, Any]
"""An entry of a list as on the wire: times are seconds of the epoch."""
Rank: TypeAlias = list[Any]
"""Values that an entry is sorted by, its name at the end, as JSON has them."""

PAGE = 10
"""Entries of a page when the request gives no size. Source: SageMaker API reference, ListTrainingJobs."""
MOST_ON_A_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """An operation of SageMaker that lists, and what its answer calls things."""

    summaries: str
    name: str
    status: str
    default_sort: str
    times: tuple[str, ...]
    """Members that are instants."""

    def rank_of(self, sort: str | None) -> tuple[str, ...]:
        """Return the members that an entry is sorted by."""
        match sort or self.default_sort:
            case "Name":
                return (self.name,)
            case "Status":
                return (self.status, "CreationTime", self.name)
            case _:
                return ("CreationTime", self.name)


TRAINING_JOBS = Listing(
    summaries="TrainingJobSummaries",
    name="TrainingJobName",
    status="TrainingJobStatus",
    default_sort="CreationTime",
    times=("CreationTime", "LastModifiedTime", "TrainingEndTime"),
)
TUNING_JOBS = Listing(
    summaries="HyperParameterTuningJobSummaries",
    name="HyperParameterTuningJobName",
    status="HyperParameterTuningJobStatus",
    default_sort="Name",
    times=("CreationTime", "LastModifiedTime", "HyperParameterTuningEndTime"),
)
"""Source: SageMaker API reference, ListHyperParameterTuningJobs, SortBy."""

_TIMES = (
    ("CreationTimeAfter", "CreationTime", 1),
    ("CreationTimeBefore", "CreationTime", -1),
    ("LastModifiedTimeAfter", "LastModifiedTime", 1),
    ("LastModifiedTimeBefore", "LastModifiedTime", -1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A reader's position in the merged list."""

    sagemaker: str | None = None
    """Token of the page of SageMaker that comes next, or is only partly given."""
    size: int = PAGE
    """Entries of that page."""
    given: int = 0
    """Entries of that page that were given."""
    after: Rank | None = None
    """Rank of the queue's entry that was given last; None if none was."""
    is_at_end: bool = False
    """True if SageMaker has no more."""

    @classmethod
    def read(cls, token: str | None, *, size: int) -> Self:
        """Raises InvalidArgumentError for a token that is not ours."""
        if token is None:
            return cls(size=size)
        try:
            return cls(**json.loads(base64.urlsafe_b64decode(token.encode())))
        except (ValueError, TypeError, binascii.Error):
            raise InvalidArgumentError("The NextToken is not valid.", hint="Begin without one.") from None

    @property
    def token(self) -> str:
        fields = {name: getattr(self, name) for name in ("sagemaker", "size", "given", "after", "is_at_end")}
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    summaries: Sequence[Summary]
    next_token: str | None


def on_the_wire(listing: Listing, entry: Mapping[str, Any]) -> Summary:
    """Convert an entry or a description of boto3: its instants become seconds of the epoch."""
    times = {name: entry[name].timestamp() for name in listing.times if name in entry}
    return {**entry, **times}


def as_boto3(listing: Listing, summary: Summary) -> dict[str, Any]:
    """Convert an entry for boto3: its instants become aware datetimes."""
    times = {name: datetime.fromtimestamp(summary[name], UTC) for name in listing.times if name in summary}
    return {**summary, **times}


def page_size(request: Mapping[str, Any]) -> int:
    """Return the page size of the request. Raises InvalidArgumentError."""
    size = request.get("MaxResults", PAGE)
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MOST_ON_A_PAGE:
        raise InvalidArgumentError(f"MaxResults {size!r} is not valid.", hint=f"Use 1 to {MOST_ON_A_PAGE}.")
    return size


def wanted(listing: Listing, summaries: Iterable[Summary], request: Mapping[str, Any]) -> Iterator[Summary]:
    """Yield the entries that pass the filters of the request."""
    for summary in summaries:
        is_named = (request.get("NameContains") or "") in summary[listing.name]
        is_in_state = request.get("StatusEquals") in {None, summary[listing.status]}
        if is_named and is_in_state and _is_in_time(summary, request):
            yield summary


def merged(
    listing: Listing,
    cursor: Cursor,
    answer: Mapping[str, Any],
    queued: Iterable[Summary],
    request: Mapping[str, Any],
) -> Page:
    """Merge one page of both lists.

    Args:
        listing: The operation whose list it is.
        cursor: The reader's position.
        answer: SageMaker's page for it; empty at its end.
        queued: All entries of the queue that pass the request's filters.
        request: The request; if it names no order, SageMaker's page shows one.
    """
    everything = list(answer.get(listing.summaries) or ())
    following, order = answer.get("NextToken"), _Order.of(listing, request, everything)
    mine = order.left(queued, cursor.after)
    names = {summary[listing.name] for summary in queued}
    theirs = [(at, summary) for at, summary in enumerate(everything) if at >= cursor.given]
    theirs = [(at, summary) for at, summary in theirs if summary[listing.name] not in names]
    page, size = list[Summary](), page_size(request)
    while len(page) < size and (theirs or (mine and not following)):
        is_mine = bool(mine) and (not theirs or order.is_first(mine[0], theirs[0][1]))
        page.append(mine.pop(0) if is_mine else theirs.pop(0)[1])
        cursor = replace(cursor, after=order.rank(page[-1])) if is_mine else cursor
    if theirs:
        return Page(summaries=page, next_token=replace(cursor, given=theirs[0][0]).token)
    after = replace(cursor, sagemaker=following, given=0, is_at_end=not following)
    return Page(summaries=page, next_token=after.token if following or mine else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    members: tuple[str, ...]
    is_descending: bool

    @classmethod
    def of(cls, listing: Listing, request: Mapping[str, Any], theirs: Sequence[Summary]) -> Self:
        members = listing.rank_of(request.get("SortBy"))
        first = members[0]
        shown = len(theirs) > 1 and theirs[0][first] > theirs[-1][first]
        sort_order = request.get("SortOrder")
        return cls(members=members, is_descending=sort_order == "Descending" if sort_order else shown)

    def rank(self, summary: Summary) -> Rank:
        return [summary[member] for member in self.members]

    def is_first(self, summary: Summary, other: Summary) -> bool:
        return (self.rank(summary) > self.rank(other)) == self.is_descending

    def left(self, queued: Iterable[Summary], after: Rank | None) -> list[Summary]:
        """Return in order the entries that were not given yet. Others may have come or ended since."""
        ordered = sorted(queued, key=self.rank, reverse=self.is_descending)
        if after is None:
            return ordered
        return [
            summary
            for summary in ordered
            if self.rank(summary) != after and (self.rank(summary) < after) == self.is_descending
        ]


def _is_in_time(summary: Summary, request: Mapping[str, Any]) -> bool:
    for name, member, sign in _TIMES:
        bound = request.get(name)
        if isinstance(bound, int | float) and sign * summary[member] < sign * bound:
            return False
    return True
