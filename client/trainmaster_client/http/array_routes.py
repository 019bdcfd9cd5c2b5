"""The routes of arrays, one method each; ``ApiClient`` has them beside those of jobs."""

from collections.abc import Mapping
from typing import Any

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.http.calls import ApiCalls, Document, Parameter, path_name, query
from trainmaster_client.http.transport import ATTEMPTS

Values = list[dict[str, str]] | dict[str, list[str]]
"""Hyperparameters that differ from task to task: a row a task, or a column a name."""


class ArrayRoutes(ApiCalls):
    """Calls the routes of arrays. Parameters that are None are left out."""

    def add_array(self, body: Mapping[str, Any], *, key: str) -> Document:
        """Queue many tasks of one request; answers ``{"array", "warnings"}``.

        Args:
            body: ``request``, ``tasks``, and what else of ``at_most``, ``values``, ``stop_after_failures``.
            key: Idempotency key of this submission, the same whenever it is repeated.

        Raises:
            ConflictError: A job or an array has the name, or one of its tasks'.
        """
        headers = {"idempotency-key": key} if key else {}
        return self._call("POST", "/add-array", body, attempts=ATTEMPTS, headers=headers)

    def try_array(self, body: Mapping[str, Any], *, team: str | None = None) -> Document:
        """Ask what would become of an array: violations, cost of all, start of the first, end of the last."""
        parameters = query({"dry_run": True, "team": team})
        return self._call("POST", f"/add-array{parameters}", body, attempts=ATTEMPTS)

    def array(self, name: str) -> Document:
        """Return one array. Raises NotFoundError."""
        return self._read(f"/arrays/{path_name(name)}")

    def arrays(self, **filters: Parameter) -> Document:
        """Return all arrays that match, however many answers that takes.

        Filters: ``state``, ``team``, ``pool``, ``mine``, ``submitted_by``.
        """
        return self._whole("/arrays", filters, "arrays")

    def array_tasks(self, name: str, *, state: str | None = None) -> Document:
        """Return all tasks of an array, in the order of their indices, however many answers that takes."""
        path, tasks = f"/arrays/{path_name(name)}/tasks", list[Any]()
        start: str | None = None
        while True:
            page = self._read(f"{path}{query({'state': state, 'from': start, 'limit': _LARGEST_PAGE})}")
            tasks += self._list(page, "tasks")
            before, start = start, page.get("next_token")
            if not start or start == before:
                return page | {"tasks": tasks}

    def first_task(self, name: str) -> Document | None:
        """Return the task with the lowest index; None if the answer has none."""
        page = self._read(f"/arrays/{path_name(name)}/tasks{query({'limit': 1})}")
        return next(iter(self._list(page, "tasks")), None)

    def change_array(self, name: str, changes: Mapping[str, Any]) -> Document:
        """Change ``priority``, ``held`` or ``at_most`` (None lifts it); repeated, it is the same."""
        return self._call("PATCH", f"/arrays/{path_name(name)}", changes, attempts=ATTEMPTS)

    def cancel_array(self, name: str, *, tasks: str | None = None) -> Document:
        """Cancel the whole array, or these tasks of it: ``3-7`` or ``1,5``.

        Raises InvalidArgumentError for tasks that are an empty text, which older stacks take for all.
        """
        if tasks is not None and not tasks.strip():
            raise InvalidArgumentError(
                "No tasks are named.", hint="Name some, e.g. 3-7, or leave them out for the whole array."
            )
        return self._call("DELETE", f"/arrays/{path_name(name)}{query({'tasks': tasks})}")

    def rerun_array(self, name: str, body: Mapping[str, Any]) -> Document:
        """Submit tasks again as a new array; ``body`` has ``tasks``, and maybe ``name`` and ``fresh``."""
        return self._call("POST", f"/arrays/{path_name(name)}/rerun", body)


_LARGEST_PAGE = 100
"""Tasks of one page."""
