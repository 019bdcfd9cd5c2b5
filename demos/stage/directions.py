"""Files by which a story directs its jobs: how far a training may go, and what a waiting job is to do."""

from pathlib import Path

from demos.programs import ordered_job


class Hold:
    """A file that tells a training how far it may go (option ``hold_file``)."""

    def __init__(self, folder: Path, label: str) -> None:
        self.path = folder / f"{label}.hold"

    def at(self, step: int) -> None:
        """Let it train up to this step, and wait there."""
        draft = self.path.with_suffix(".new")
        draft.write_text(str(step), encoding="utf-8")
        draft.replace(self.path)  # whoever reads it reads one number or the other

    def release(self) -> None:
        """Let it train to its end."""
        self.path.unlink(missing_ok=True)


class Orders:
    """Orders for the containers of jobs, those to come too (``demos/programs/ordered_job.py``)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "orders"

    def command(self, job: str, work: str) -> list[str]:
        """Return the command of a job that obeys, and does this work until then."""
        return ["python", ordered_job.__file__, str(self._of(job)), work]

    def give(self, job: str, order: str, text: str = "") -> None:
        (self._of(job) / order).write_text(text, encoding="utf-8")

    def _of(self, job: str) -> Path:
        folder = self._folder / job
        folder.mkdir(parents=True, exist_ok=True)
        return folder
