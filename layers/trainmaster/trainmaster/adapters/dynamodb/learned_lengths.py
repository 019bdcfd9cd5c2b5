"""Derive from an ended job what it adds to the rows of learned lengths."""

from itertools import pairwise

from trainmaster.adapters.dynamodb import layout, retention
from trainmaster.adapters.dynamodb.codec import LATEST_RUN, LEARNED, NEWEST, PLACED, iso
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.core.durations.decay import era_of, weight_at
from trainmaster.core.durations.histogram import bucket
from trainmaster.core.durations.learned_rows import LATEST
from trainmaster.core.durations.traits import notes_places
from trainmaster.core.forecast.run_times import Run
from trainmaster.core.jobs.model import JobSpec


def teach(updates: Updates, spec: JobSpec, run: Run) -> None:
    """Add a run to each histogram that the job counts in."""
    place = None if spec.likely is None else spec.likely.place_of(run.trained)
    for learned in spec.learned_in or ():
        row = updates[layout.learned_key(spec.pool, spec.team, learned, era_of(run.ended_at))]
        _learns(row, run)
        if notes_places(learned):
            _notes_place(row, run, place)
        else:
            _lists(row, run)


def _learns(row: Update, run: Run) -> None:
    """Add a run to what is learned; ``LearnedRow.after``, as an increment."""
    row.add[f"{LEARNED}{bucket(run.trained)}"] += weight_at(run.ended_at)
    row.put |= {NEWEST: iso(run.ended_at), "ttl": retention.ttl(run.ended_at, retention.LEARNED_LENGTHS)}


def _notes_place(row: Update, run: Run, place: int | None) -> None:
    """Note the place of a run among its predicted lengths; ``LearnedRow.after_placed``, as an increment."""
    if place is not None:
        row.add[f"{PLACED}{place}"] += weight_at(run.ended_at)


def _lists(row: Update, run: Run) -> None:
    """Put a run before the last ones of its kind.

    It is stored as one second more than it trained: zero stands for a run that there was not.
    """
    names = [f"{LATEST_RUN}{number}" for number in range(LATEST)]
    if names[0] not in row.put:  # of two runs that end in one commit one is listed
        row.put[names[0]] = int(run.trained.total_seconds()) + 1
        row.shift += [(later, earlier, 0) for earlier, later in pairwise(names)]
