"""FolderRegister over a list: everything is near."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.core.submission.shared_folders import JobFolder


@dataclass(slots=True)
class MemoryFolders:
    noted: list[JobFolder] = field(default_factory=list)
    """The newest first."""

    def near(self, folders: Iterable[JobFolder]) -> tuple[JobFolder, ...]:
        buckets = {folder.bucket for folder in folders}
        return tuple(folder for folder in self.noted if folder.bucket in buckets)

    def note(self, folders: Iterable[JobFolder], *, near: Iterable[JobFolder], at: datetime) -> None:  # noqa: ARG002
        self.noted = [*folders, *self.noted]
