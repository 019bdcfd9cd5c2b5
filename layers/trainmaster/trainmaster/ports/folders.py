"""Which jobs named a folder in S3 last: for warnings alone, so what is lost costs a warning."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from trainmaster.core.submission.shared_folders import JobFolder


class FolderRegister(Protocol):
    """Each call may raise UnavailableError."""

    def near(self, folders: Iterable[JobFolder]) -> tuple[JobFolder, ...]:
        """Folders of jobs that may meet one of these, of one folder the newest first; bounded in its reads.

        Jobs that have ended are among them, and others that do not meet: whoever asks compares.
        """

    def note(self, folders: Iterable[JobFolder], *, near: Iterable[JobFolder], at: datetime) -> None:
        """Remember the folders of a job that was submitted, beside those that were found ``near``."""
