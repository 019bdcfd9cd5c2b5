"""What an action of a plan does to its pool is said once; whoever carries plans out handles each change."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from trainmaster.core.planning import actions, apply, changes

ROOT = Path(__file__).parents[3]
LAYER = ROOT / "layers/trainmaster/trainmaster"
ACTIONS = {kind.__name__ for kind in get_args(actions.Action)}
CHANGES = {kind.__name__ for kind in get_args(changes.PoolChange)}
TAKE_ACTIONS_APART = (LAYER / "core/planning/actions.py", LAYER / "core/planning/apply.py")
HANDLE_EACH_CHANGE = {
    "a replay": (ROOT / "client/trainmaster_client/simulate/engine/pool_passes.py",),
    "the property tests": (ROOT / "tests/properties/carrying_out.py",),
    "the executor": (
        LAYER / "services/scheduler/executor.py",
        LAYER / "services/scheduler/conditions.py",
        LAYER / "services/scheduler/stops.py",
        LAYER / "services/scheduler/warm_keeping.py",
        LAYER / "services/scheduler/array_expansion.py",
    ),
}
CARRIES_OUT = (
    *(LAYER / "services/scheduler").rglob("*.py"),
    *(LAYER / "core/forecast").rglob("*.py"),
    *(ROOT / "client/trainmaster_client/simulate").rglob("*.py"),
    ROOT / "tests/properties/carrying_out.py",
)


def cases(path: Path) -> Iterator[str]:
    """Names of the classes that the ``match`` statements of a module tell apart."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name):
            yield node.cls.id


def test_each_action_is_applied_in_one_place() -> None:
    assert set(cases(LAYER / "core/planning/apply.py")) >= ACTIONS


def test_nobody_else_who_carries_plans_out_takes_actions_apart() -> None:
    others = [path for path in CARRIES_OUT if path not in TAKE_ACTIONS_APART]
    assert {path.name: found for path in others if (found := ACTIONS.intersection(cases(path)))} == {}


def test_each_change_comes_of_an_action() -> None:
    source = ast.parse(Path(apply.__file__).read_text(encoding="utf-8"))
    made = {
        node.func.id
        for node in ast.walk(source)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert CHANGES - made == set()


@pytest.mark.parametrize("who", ["a replay", "the property tests"])
def test_whoever_carries_plans_out_handles_each_change(who: str) -> None:
    handled = {name for path in HANDLE_EACH_CHANGE[who] for name in cases(path)}
    assert CHANGES - handled == set()


def test_the_executor_writes_each_change_in_a_transaction_or_by_itself() -> None:
    handled = {name for path in HANDLE_EACH_CHANGE["the executor"] for name in cases(path)}
    of_jobs = {"JobStarts", "VictimAsked", "GrowthAsked"}  # their transactions change the jobs themselves
    assert CHANGES - handled == of_jobs
