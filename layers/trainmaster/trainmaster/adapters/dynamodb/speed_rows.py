"""Rows of measured speeds: the last runs of one kind of work in one shape.

Their keys are ``KW#pool#team`` and ``kind#shape``. An ended attempt writes one of them, and reads none: each
run moves the earlier ones by one place.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any
from zlib import crc32

from trainmaster.adapters.dynamodb import layout, retention
from trainmaster.adapters.dynamodb.updates import Updates
from trainmaster.core.durations.work_speeds import LATEST, MeasuredRun, read_run, run_text
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.measured_runs import measured_run
from trainmaster.core.jobs.model import JobSpec

_PLACES = tuple(f"s#{number}" for number in range(LATEST))
"""Attributes of a row's runs, the newest first; zero stands for a run that there was not."""


KIND_DIGITS = 3
"""Hexadecimal digits of a kind of work in the key of its rows: 4,096 groups of rows of a team."""
SHAPE_ROWS = 64
"""Rows of such a group. Kinds and shapes beyond share rows, so that no team can have more of them."""


def speeds_prefix(pool: str, team: str, work_kind: str) -> layout.Key:
    """Build the beginning of the keys of a kind's rows."""
    return (f"KW#{pool}#{team}", f"{work_kind[:KIND_DIGITS]}#")


def speeds_key(pool: str, team: str, work_kind: str, shape: str) -> layout.Key:
    """Build the key of a kind's row in a shape."""
    partition, prefix = speeds_prefix(pool, team, work_kind)
    return (partition, f"{prefix}{crc32(shape.encode()) % SHAPE_ROWS:02d}")


def note_speed(updates: Updates, spec: JobSpec, attempt: Attempt) -> None:
    """Put the speed of an ended attempt before the earlier ones of its kind and shape, if it tells one."""
    run = measured_run(spec, attempt)
    if run is None or spec.work_kind is None:
        return
    row = updates[speeds_key(spec.pool, spec.team, spec.work_kind, run.shape)]
    if _PLACES[0] not in row.put:  # of two runs that end in one commit one is kept
        row.put |= {
            _PLACES[0]: run_text(spec.work_kind, run),
            "ttl": retention.ttl(run.ended_at, retention.LEARNED_LENGTHS),
        }
        row.shift += [(later, earlier, 0) for earlier, later in pairwise(_PLACES)]


def runs_in(rows: Iterable[Mapping[str, Any]], work_kind: str) -> Iterator[MeasuredRun]:
    """Yield the runs of the kind in these rows; what cannot be understood is left out."""
    for row in rows:
        for place in _PLACES:
            run = read_run(work_kind, row.get(place))
            if run is not None:
                yield run
