"""Finds what ``trainmaster cancel`` takes out of the queue: jobs, arrays, tasks of an array in one state."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from trainmaster.core.jobs.index_sets import ranges_text

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.known_names import complete_pool, complete_state, complete_team
from trainmaster_client.errors import InvalidRequestError, NotFoundError, UnexpectedAnswerError
from trainmaster_client.jobs.array_views import job_or_array
from trainmaster_client.jobs.job_views import FINAL_STATES, WAITING_STATES, JobView, job_view
from trainmaster_client.jobs.queue_reader import QueueReader

_ON_THEIR_WAY = "stopping"
"""The state of jobs that somebody cancelled already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelFilters:
    """Filters that choose jobs, instead of names: a job must match all of them."""

    mine: Annotated[bool, typer.Option("--mine", help="All jobs that you submitted.")] = False
    team: Annotated[
        str | None, typer.Option(metavar="TEAM", help="All of this team.", autocompletion=complete_team)
    ] = None
    state: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="All in this state, e.g. pending.", autocompletion=complete_state),
    ] = None
    pool: Annotated[
        str | None, typer.Option(metavar="POOL", help="All of this pool.", autocompletion=complete_pool)
    ] = None

    @property
    def are_given(self) -> bool:
        return self != CancelFilters()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    name: str
    is_waiting: bool = True
    is_array: bool = False
    """Whether it is known to be an array; a name alone may be either."""
    tasks: str | None = None
    """Indices of an array's tasks; None: all of it."""

    @property
    def shown(self) -> str:
        return self.name if self.tasks is None else f"{self.name} (tasks {self.tasks})"

    def cancel(self, api: ApiClient) -> Document:
        """Cancel it, and return its view. Raises what the API client raises."""
        if self.is_array:
            return api.cancel_array(self.name, tasks=self.tasks)
        return job_or_array(lambda: api.cancel(self.name), lambda: api.cancel_array(self.name))


def matching_targets(api: ApiClient, filters: CancelFilters) -> list[Target]:
    """Read all that matches and can be cancelled; other teams' jobs have no names.

    An array goes as one: tasks cancelled one by one would make room for those that are no jobs yet.
    """
    answer = QueueReader(lambda: api).whole({**asdict(filters), "mine": filters.mine or None})
    views = [job_view(job) for job in answer["jobs"]]
    jobs = {job.name: job for job in views if job.name and job.state not in {*FINAL_STATES, _ON_THEIR_WAY}}
    alone = [job for job in jobs.values() if not _goes_with_array(job, filters)]
    named = {job.array: job for job in jobs.values() if job.array and _goes_with_array(job, filters)}
    arrays = _arrays_of_caller(api, filters) if filters.mine else answer.get("arrays") or ()
    whole = [str(array["name"]) for array in arrays if array.get("name")]
    targets = [Target(name=str(job.name), is_waiting=job.is_waiting) for job in alone]
    return [*targets, *_arrays(api, dict.fromkeys([*named, *whole]), filters)]


def _arrays_of_caller(api: ApiClient, filters: CancelFilters) -> list[Document]:
    """Read the caller's arrays, with or without jobs; none from a stack that cannot tell whose one is.

    An older stack lists all arrays of the team beside jobs that are ``mine``: those must stay.
    """
    try:
        return list(api.arrays(mine=True, team=filters.team, pool=filters.pool).get("arrays") or ())
    except (InvalidRequestError, NotFoundError, UnexpectedAnswerError):
        return []


def _goes_with_array(job: JobView, filters: CancelFilters) -> bool:
    return bool(job.array) and (filters.state is None or job.is_waiting)


def _arrays(api: ApiClient, names: Mapping[str, None], filters: CancelFilters) -> Iterator[Target]:
    """Yield each array: all of it, or only its tasks in the state that is asked for."""
    for name in names:
        if filters.state is None:
            yield Target(name=name, is_array=True)
            continue
        if filters.state not in WAITING_STATES:
            continue
        tasks = api.array_tasks(name, state=filters.state).get("tasks") or ()
        indices = sorted(int(task["index"]) for task in tasks)
        if indices:
            yield Target(name=name, is_array=True, tasks=ranges_text(indices, most=len(indices)))
