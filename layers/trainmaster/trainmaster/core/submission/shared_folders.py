"""Folders of two jobs that meet: one job writes what the other restores as its own checkpoints.

SageMaker restores every object below ``CheckpointConfig.S3Uri``, whoever wrote it, and S3 knows prefixes, not
folders: ``s3://b/a`` also begins ``s3://b/ab/...``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainmaster.core.errors import FieldError
from trainmaster.core.request.s3_uri import parse_s3


class Use(StrEnum):
    """A job's use of a folder. The texts are stored."""

    SAVES = "saves"
    """It mirrors its checkpoints there, and restores from there."""
    WRITES = "writes"
    """It writes its results there, below its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFolder:
    """A folder of one job."""

    job: str
    use: Use
    bucket: str
    key: str
    """The key as written, without the bucket."""

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    @property
    def written(self) -> str:
        """Return the prefix of the keys of all objects that the job writes there."""
        # SageMaker appends a slash and, for results, the name of the training job.
        folder = f"{self.key.rstrip('/')}/" if self.key.strip("/") else ""
        return folder if self.use is Use.SAVES else f"{folder}{self.job}/"

    def restores(self, other: "JobFolder") -> bool:
        """Tell whether objects that the other job writes are downloaded with this one's checkpoints."""
        return self.use is Use.SAVES and self.bucket == other.bucket and other.written.startswith(self.key)

    def meets(self, other: "JobFolder") -> bool:
        """Tell whether either job restores what the other writes; a job does not meet itself."""
        is_another = self.job != other.job
        return is_another and (self.is_same_as(other) or self.restores(other) or other.restores(self))

    def is_same_as(self, other: "JobFolder") -> bool:
        """Tell whether both jobs save to the same folder, however many slashes end it."""
        both_save = self.use is other.use is Use.SAVES
        return both_save and (self.bucket, self.written) == (other.bucket, other.written)


_FIELDS: Mapping[Use, tuple[str, str]] = {
    Use.SAVES: ("CheckpointConfig", "S3Uri"),
    Use.WRITES: ("OutputDataConfig", "S3OutputPath"),
}


def folders_of(body: Mapping[str, Any]) -> tuple[JobFolder, ...]:
    """Return the folders of a valid request."""
    return tuple(_folders(body))


def _folders(body: Mapping[str, Any]) -> Iterator[JobFolder]:
    for use, (section, field) in _FIELDS.items():
        place = parse_s3(body.get(section, {}).get(field, ""))
        if place is not None:
            yield JobFolder(job=body["TrainingJobName"], use=use, bucket=place.bucket, key=place.key)


def warning(mine: JobFolder, theirs: JobFolder, *, who: str) -> FieldError:
    """Make the warning for the owner of ``mine``.

    ``who`` names the other job as that owner may hear of it.
    """
    own = "give each job a folder of its own, such as one that ends with its name"
    if mine.is_same_as(theirs):
        message = f"{who} saves to the same folder, {theirs.uri}: each would restore the other's checkpoints"
    elif mine.restores(theirs):
        what = "saves to" if theirs.use is Use.SAVES else "writes its output below"
        message = f"{who} {what} {theirs.uri}, which begins with this prefix: its files are restored as yours"
    else:
        message = f"{who} restores from {theirs.uri}, where this job writes: its files are restored as theirs"
    return FieldError(field=".".join(_FIELDS[mine.use]), message=message, hint=own)
