"""Which policy the twin remembers for the next one with the same state folder."""

from pathlib import Path

import pytest

from local.policy_file import PolicyMemory
from local.wire import Request, Response


def put(query: str = "", *, method: str = "PUT") -> Request:
    return Request(method=method, raw_path="/prod/policy", query=query, headers={}, body=b'{"version": 1}')


def answer(status: int) -> Response:
    return Response(status=status, headers={}, body=b"{}")


@pytest.mark.parametrize(
    ("request_", "path", "status", "is_remembered"),
    [
        pytest.param(put(), "/policy", 200, True, id="a policy that is in force now"),
        pytest.param(put("dry_run=false"), "/policy", 200, True, id="asked for with the parameter, too"),
        pytest.param(put("dry_run=true"), "/policy", 200, False, id="not one that was only tried"),
        pytest.param(put(), "/policy", 422, False, id="not one that was refused"),
        pytest.param(put(), "/policy/paused", 200, False, id="not the pause switch"),
        pytest.param(put(method="GET"), "/policy", 200, False, id="not one that was only read"),
    ],
)
def test_a_policy_that_was_accepted_is_remembered(
    request_: Request, path: str, status: int, *, is_remembered: bool, tmp_path: Path
) -> None:
    memory = PolicyMemory(path=tmp_path / "policy.json")
    memory.answered(request_, path, answer(status))
    assert memory.recall() == ({"version": 1} if is_remembered else None)
