"""Answers of the API about arrays, as its contract has them."""

from typing import Any

from tests.integration.client.fake_api import Scripted, problem

NAMES = ("waiting", "held", "running", "completed", "failed", "stopped")


def array_document(name: str = "sweep", **fields: Any) -> dict[str, Any]:
    """An ArrayView of four waiting tasks unless told otherwise; ``tasks`` are counts by name."""
    counts = dict.fromkeys(NAMES, 0) | fields.pop("tasks", {"waiting": 4})
    return {
        "name": name,
        "team": "default",
        "pool": "p5",
        "state": "pending",
        "reason": None,
        "priority": 1,
        "at_most": None,
        "tasks": {"total": sum(counts.values()), **counts},
        "failed": "",
        "stopped": "",
        "submitted_at": "2026-11-21T01:00:00Z",
        "ended_at": None,
        "instance_hours": 0.0,
        "usd": 0.0,
        "rerun_of": None,
        "waiting": None,
        "after": [],
        "position": 3,
        **fields,
    }


def task_document(index: int, state: str = "completed", **fields: Any) -> dict[str, Any]:
    """A task as ``GET /arrays/{name}/tasks`` lists it."""
    return {
        "index": index,
        "name": f"sweep-{index}",
        "values": {},
        "state": state,
        "reason": None,
        "attempt": 0,
        "cost_usd": 1.5,
        "started_at": "2026-11-21T01:10:00Z",
        "ended_at": "2026-11-21T01:20:00Z",
        **fields,
    }


def no_job(name: str = "sweep") -> Scripted:
    """The answer of ``GET /jobs/{name}`` where an array has the name."""
    message = f"{name} is an array of jobs"
    hint = f"/arrays/{name}"
    return problem(404, "Not found", message, {"field": "name", "message": message, "hint": hint})
