"""Traits by which jobs are alike, and the histograms that a job counts in."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache

from trainmaster.core.durations.histogram import bucket
from trainmaster.core.durations.work_speeds import work_kind

SLOTS = 4096
"""Number of histograms of a team on one level: more kinds of jobs share them, so no team can have more
rows."""


class Level(StrEnum):
    """Levels of histograms, the most specific first."""

    PROGRAM = "p"
    """Team, name without counters, image, hyperparameters, shape, requested time."""
    OWN = "o"
    """Team, submitter, name and shape: what one user runs under a name that others use for something else."""
    NAME = "n"
    SUBMITTER = "s"
    """Team, submitter and shape, whatever the time that is requested."""
    IMAGE = "i"
    TEAM = "t"
    """Team, shape and requested time alone."""
    EVERYBODY = "e"
    """Shape and requested time, of all teams."""
    SHAPE = "a"
    """Shape alone: it tells something about jobs that request what nobody has requested before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Facts about a job, known when it is submitted, that tell something about how long it trains."""

    team: str
    lane: str
    """``lane_text``: the instances that it asks for."""
    limit: timedelta
    """MaxRuntimeInSeconds as requested."""
    name: str
    image: str | None = None
    """Image, or name of the algorithm; None if it is not known."""
    hyperparameters: str | None = None
    """Digest made by ``digest_of``; None if the hyperparameters are not known."""
    submitter: str | None = None
    """Name of the user or identity that submits it; None if it is not known."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the histograms that the job counts in, the most specific first."""
        shape = (self.lane, bucket(self.limit))
        program = base_name(self.name)
        contents: dict[Level, tuple[object, ...]] = {
            Level.NAME: (self.team, program, *shape),
            Level.TEAM: (self.team, *shape),
            Level.EVERYBODY: shape,
            Level.SHAPE: (self.lane,),
        }
        if self.submitter:
            submitter = _SESSION.sub("", self.submitter)
            contents[Level.OWN] = (self.team, submitter, program, self.lane)
            contents[Level.SUBMITTER] = (self.team, submitter, self.lane)
        if self.image is not None:
            contents[Level.IMAGE] = (self.team, self.image, *shape)
        if self.hyperparameters is not None:
            contents[Level.PROGRAM] = (self.team, program, self.image, self.hyperparameters, *shape)
        return tuple(f"{level}{_slot(contents[level])}" for level in Level if level in contents)

    @property
    def work_kind(self) -> str:
        """Kind of work, in whatever shape: its speeds are compared with each other."""
        return work_kind(self.team, base_name(self.name), self.image, self.hyperparameters)


def learned_key(team: str, key: str) -> tuple[str, str]:
    """Return the team and key of the row that holds a histogram; those of all teams have no team."""
    return ("" if key.startswith((Level.EVERYBODY, Level.SHAPE)) else team, key)


def notes_places(key: str) -> bool:
    """Tell whether the histogram also notes how well the lengths of its jobs were predicted.

    That of the shape does, of all its jobs alike: a correction by kinds would put jobs of one kind before
    others of it for what ended between their submissions.
    """
    return key.startswith(Level.SHAPE)


_ENDINGS = re.compile(r"(-+(\d+|(?=[0-9a-f]*\d)[0-9a-f]{6,}))+$", re.IGNORECASE)
"""Counters, times and digests at the end of a name: ``bert-2026-11-23-10-34-59-123``, ``bert-3fa9c1``."""
_SESSION = re.compile(r"(?<=[-_@])\d{6,}$")
"""Time at the end of a session that an SDK names, ``botocore-session-1764086400``: it is no other user."""
_NUMBER = re.compile(r"\d+")


def base_name(name: str) -> str:
    """Return what the names of one program's runs have in common; numbers inside the name count as equal."""
    return _NUMBER.sub("0", _ENDINGS.sub("", name)) or name


_NOT_SAID_BY_USERS = ("sagemaker_job_name", "sagemaker_submit_directory", "sagemaker_instance_")
"""Hyperparameters that SDKs write, and that differ from run to run. Source: sagemaker 2.257.7."""


def digest_of(hyperparameters: Mapping[str, str]) -> str:
    kept = {key: value for key, value in hyperparameters.items() if not key.startswith(_NOT_SAID_BY_USERS)}
    return hashlib.blake2b(json.dumps(kept, sort_keys=True).encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=SLOTS)
def _slot(content: tuple[object, ...]) -> str:
    digest = hashlib.blake2b(json.dumps(content).encode(), digest_size=8).digest()
    return f"{int.from_bytes(digest) % SLOTS:03x}"
