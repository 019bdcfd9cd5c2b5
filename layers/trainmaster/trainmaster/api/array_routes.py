"""GET /arrays, /arrays/{name} and its tasks: lists of arrays and of what their tasks do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice

from trainmaster.api.array_views import array_view, task_view
from trainmaster.api.job_context import shifts_in
from trainmaster.api.job_query import ListQuery, is_by, read_mine
from trainmaster.api.known_names import known_teams, no_team, one_of, pools_asked, refused
from trainmaster.api.paging import Room
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import View, reason_view
from trainmaster.core.arrays.array_model import FINAL_ARRAY_STATES, MOST_WAITING_JOBS, Array, ArrayState
from trainmaster.core.arrays.tasks import task_name, virtual_task
from trainmaster.core.errors import NotFoundError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.index_sets import HIGHEST_INDEX, bits_of, positions
from trainmaster.core.jobs.model import Job, JobState

DEFAULT_LIMIT, MOST_ARRAYS = 50, 200
"""Arrays, or tasks, of one answer."""
MOST_TASKS = 100
MOST_AHEAD = 1000
"""Jobs that are counted before an array's first waiting task."""
_BATCH = 50


def find_array(context: RequestContext, name: str) -> Array:
    """Find an array. Raises NotFoundError, the same for unknown arrays and for those of other teams."""
    array = context.outside.reader.array(name)
    if array is None or not context.sees(array.template.spec.team):
        raise NotFoundError("no array of your teams has this name")
    return array


def show_array(context: RequestContext, name: str) -> Answer:
    context.call.parameters()
    array = find_array(context, name)
    view = array_view(array, context, position=position_of_first(array, context))
    if view["waiting"] is None:
        view["waiting"] = _why_the_first_task_waits(array, context)
    return Answer(status=HTTPStatus.OK, body=view)


def _why_the_first_task_waits(array: Array, context: RequestContext) -> View | None:
    """Return why a task waits that is a job already; None if none does, or its reason is not known yet."""
    if not array.jobs.waiting:
        return None
    # Tasks become jobs in the order of their indices, so the last of them are those that wait.
    last = list(positions(array.existing))[-MOST_WAITING_JOBS:]
    names = [task_name(array.name, array.indices[position]) for position in last]
    jobs = context.outside.reader.jobs(names)
    waiting = (jobs[name] for name in names if name in jobs and jobs[name].is_waiting)
    reasons = ((job.name, job.waiting) for job in waiting if job.waiting is not None)
    for name, reason in reasons:
        return reason_view(Reason(code=reason.code, message=f"{name}: {reason.message}"))
    return None


def position_of_first(array: Array, context: RequestContext) -> int | None:
    """Return the rank of the array's first waiting task; None if none has a turn, or turns move."""
    template = array.template
    if not array.counts.waiting or template.waits_for_others or array.held:
        return None
    reader, pool = context.outside.reader, context.policy.pool(template.spec.pool)
    if pool is None or shifts_in(pool, context):
        return None
    rank = (template.score, f"{array.name}-")
    return 1 + reader.entries_before(pool.name, rank, most=MOST_AHEAD)


# ---- lists


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayQuery:
    """Filters of a list of arrays."""

    state: ArrayState | None
    team: str | None
    pool: str | None
    mine: bool
    submitted_by: str | None
    limit: int
    token: str

    def fits(self, array: Array, context: RequestContext) -> bool:
        """Tell whether the array matches, and is of a team that the caller may see."""
        team, pool = array.template.spec.team, array.template.spec.pool
        is_wanted = self.state in {None, array.state} and self.team in {None, team}
        is_theirs = is_by(array.template, context, mine=self.mine, submitted_by=self.submitted_by)
        return is_wanted and is_theirs and self.pool in {None, pool} and context.sees(team)


def list_arrays(context: RequestContext) -> Answer:
    """List arrays that have not ended by pool and name; with a final state those that ended, newest first."""
    query = _query(context)
    is_final = query.state in FINAL_ARRAY_STATES
    pools = [] if is_final else [pool.name for pool in pools_asked(context, query.pool)]
    sections = _teams(context, query) if is_final else pools
    section, _, after = query.token.partition("/")
    if section and section not in sections:
        raise refused("next_token", "is not a token of this list", "start again without it")
    views, room, last = list[View](), Room(), query.token
    for name in sections[sections.index(section) if section else 0 :]:
        behind = after if name == section else ""
        for mark, array in _ended(context, name, behind) if is_final else _open(context, name, behind):
            if not query.fits(array, context):
                continue  # its name is not in the token either: it may be another team's
            if len(views) == query.limit or room.is_full:
                return _page(views, last)
            views.append(array_view(array, context))
            room.takes(views[-1])
            last = f"{name}/{mark}"
    return _page(views, None)


def _page(views: Sequence[View], token: str | None) -> Answer:
    return Answer(status=HTTPStatus.OK, body={"arrays": list(views), "next_token": token})


def _open(context: RequestContext, pool: str | None, behind: str) -> Iterator[tuple[str, Array]]:
    reader = context.outside.reader
    while marks := reader.open_arrays(pool, after=behind, limit=_BATCH):
        arrays = reader.arrays(name for _, name in marks)
        yield from ((mark, arrays[name]) for mark, name in marks if name in arrays)
        behind = marks[-1][0]


def _ended(context: RequestContext, team: str, behind: str) -> Iterator[tuple[str, Array]]:
    reader = context.outside.reader
    while marks := reader.ended_arrays(team, after=behind, limit=_BATCH):
        arrays = reader.arrays(name for _, name in marks)
        yield from ((mark, arrays[name]) for mark, name in marks if name in arrays)
        behind = marks[-1][0]


def _teams(context: RequestContext, query: ArrayQuery) -> list[str]:
    teams = known_teams(context) if query.team is None else (query.team,)
    return [team for team in teams if context.sees(team)]


def _query(context: RequestContext) -> ArrayQuery:
    given = context.call.parameters("state", "team", "pool", "mine", "submitted_by", "limit", "next_token")
    state = given.get("state")
    if state is not None and state not in set(ArrayState):
        raise refused("state", f"there is no state {state!r}", one_of(state, ArrayState))
    if "team" in given and given["team"] not in known_teams(context):
        raise no_team(context, given["team"])
    return ArrayQuery(
        state=None if state is None else ArrayState(state),
        team=given.get("team"),
        pool=given.get("pool"),
        mine=read_mine(given.get("mine")),
        submitted_by=given.get("submitted_by"),
        limit=_number("limit", given.get("limit"), default=DEFAULT_LIMIT, least=1, most=MOST_ARRAYS),
        token=given.get("next_token", ""),
    )


def _number(name: str, text: str | None, *, default: int, least: int, most: int) -> int:
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most:
        return int(text)
    raise refused(name, f"is no whole number from {least} to {most}", f"write {least} to {most} in digits")


def arrays_that_wait(context: RequestContext, query: ListQuery) -> list[Array]:
    """Return the first arrays with waiting tasks that match a list of jobs: one line of the queue each."""
    fits = (array for _, array in _open(context, query.pool, "") if _waits_and_fits(array, context, query))
    return list(islice(fits, MOST_ARRAYS))


def _waits_and_fits(array: Array, context: RequestContext, query: ListQuery) -> bool:
    team = array.template.spec.team
    if query.team not in {None, team} or not context.sees(team):
        return False
    is_named = array.name.startswith(query.name_prefix or "")
    waits = array.counts.waiting + array.counts.held
    return bool(waits) and is_named and query.is_by(array.template, context)


# ---- tasks


def list_tasks(context: RequestContext, name: str) -> Answer:
    """List tasks by index, with the values of each; ``from`` is the first index that is shown."""
    given = context.call.parameters("state", "from", "limit")
    state = _task_state(given.get("state"))
    limit = _number("limit", given.get("limit"), default=DEFAULT_LIMIT, least=1, most=MOST_TASKS)
    first = _number("from", given.get("from"), default=0, least=0, most=HIGHEST_INDEX)
    array = find_array(context, name)
    request = context.outside.reader.array_request(array.name)
    chosen = [place for place in positions(_may_have(array, state)) if array.indices[place] >= first]
    views = list[View]()
    for start in range(0, len(chosen), _BATCH):
        batch = chosen[start : start + _BATCH]
        jobs = task_jobs(array, batch, context)
        for place in batch:
            task = jobs.get(place)
            shown = virtual_task(array, place) if task is None else task
            if len(views) == limit:
                return _tasks_page(views, str(array.indices[place]))
            if state in {None, shown.state}:
                views.append(task_view(array, place, task, request.values(place)))
    return _tasks_page(views, None)


def _tasks_page(views: list[View], token: str | None) -> Answer:
    return Answer(status=HTTPStatus.OK, body={"tasks": views, "next_token": token})


def _task_state(text: str | None) -> JobState | None:
    if text is None:
        return None
    if text not in set(JobState):
        raise refused("state", f"there is no state {text!r}", one_of(text, JobState))
    return JobState(text)


def _may_have(array: Array, state: JobState | None) -> int:
    """Return the bits of tasks that can be in a state, so that the jobs of others are not read."""
    match state:
        case None:
            return bits_of(range(len(array.indices)))
        case JobState.COMPLETED:
            return array.ends.completed
        case JobState.FAILED:
            return array.ends.failed
        case JobState.STOPPED:
            return array.ends.stopped
        case JobState.PENDING | JobState.HELD:
            return array.existing | array.unexpanded
        case _:
            return array.existing


def task_jobs(array: Array, places: Sequence[int], context: RequestContext) -> dict[int, Job]:
    """Read the jobs of tasks, by position; those that are no jobs yet, or never were, are left out."""
    stored = [place for place in places if not (array.unexpanded | array.ends.name_taken) >> place & 1]
    names = [task_name(array.name, array.indices[place]) for place in stored]
    jobs = context.outside.reader.jobs(names) if names else {}
    ours = (job for job in jobs.values() if job.spec.array is not None)
    return {
        job.spec.array.position: job for job in ours if job.spec.array and job.spec.array.name == array.name
    }
