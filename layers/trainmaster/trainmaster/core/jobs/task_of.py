"""What makes a job a task of an array."""

from dataclasses import dataclass

MOST_ARRAY_TASKS = 10_000
"""Tasks of one array at most: so many fit into its row, which is read by every pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOf:
    """The array that a job is a task of, and which of its tasks."""

    name: str
    index: int
    position: int
    """Number of the array's indices that are lower: the task's bit in the array's row."""

    @property
    def facts(self) -> dict[str, str | int]:
        """Return what answers and records show of it."""
        return {"name": self.name, "index": self.index}
