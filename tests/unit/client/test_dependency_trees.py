"""The picture of a job among those it waits for and those that wait for it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from trainmaster_client.errors import NotFoundError
from trainmaster_client.errors.problems import Problem
from trainmaster_client.jobs.dependency_trees import COLUMNS, MOST_JOBS, DependencyTree

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)


class Jobs:
    """Answers of ``GET /jobs/{name}``."""

    def __init__(self, **views: dict[str, Any]) -> None:
        self.views = views
        self.asked: list[str] = []

    def job(self, name: str, *, estimate: bool = True) -> dict[str, Any]:
        del estimate
        self.asked.append(name)
        if name not in self.views:
            raise NotFoundError(Problem(status=404, title="Not found", detail="no job"))
        return {"name": name, "state": "pending", "dependents": [], "dependents_count": 0, **self.views[name]}


def after(*parents: str, kind: str = "afterok", state: str = "running") -> list[dict[str, str]]:
    return [{"job": parent, "type": kind, "state": state} for parent in parents]


def drawn(jobs: Jobs, name: str) -> list[str]:
    return DependencyTree(api=jobs, now=NOW).lines(name)  # type: ignore[arg-type]


def test_a_job_is_drawn_between_its_parents_and_all_that_follow_it() -> None:
    waits = {"code": "dependency", "message": "waits for afterok:train, which is running"}
    jobs = Jobs(
        prepare={"state": "completed", "dependents": ["train"], "dependents_count": 1},
        train={
            "state": "running",
            "after": after("prepare"),
            "dependents": ["a", "b"],
            "dependents_count": 3,
        },
        a={"after": after("train"), "waiting": waits, "dependents": ["end"], "dependents_count": 1},
        b={"after": after("train", kind="afterany")},
        end={"after": after("a", kind="afternotok")},
    )
    assert drawn(jobs, "train") == [
        "prepare  completed",
        "   v afterok",
        "train  running <",
        "+- a  pending",
        "|     waits for afterok:train, which is running",
        "|  `- afternotok end  pending",
        "+- afterany b  pending",
        "`- 1 more",
    ]


def test_the_jobs_of_a_picture_come_as_the_api_answers_them() -> None:
    jobs = Jobs(
        prepare={"state": "completed", "dependents": ["train"], "dependents_count": 1},
        train={"after": after("prepare"), "dependents": ["gone"], "dependents_count": 1},
    )
    tree = DependencyTree(api=jobs, now=NOW)  # type: ignore[arg-type]
    documents = tree.documents("train")
    assert [document["name"] for document in documents] == ["train", "prepare"]
    assert documents[0]["after"] == after("prepare")


def test_a_job_that_two_others_wait_for_is_drawn_whole_once() -> None:
    jobs = Jobs(
        root={"dependents": ["left", "right"], "dependents_count": 2},
        left={"after": after("root"), "dependents": ["join"], "dependents_count": 1},
        right={"after": after("root"), "dependents": ["join"], "dependents_count": 1},
        join={"after": after("left", "right"), "dependents": ["end"], "dependents_count": 1},
        end={"after": after("join")},
    )
    lines = drawn(jobs, "root")
    assert sum("join  pending" in line for line in lines) == 2
    assert sum("end  pending" in line for line in lines) == 1
    assert len(jobs.asked) == len(set(jobs.asked))


def test_no_line_is_longer_than_80_columns_and_a_chain_stays_in_sight() -> None:
    names = [f"a-job-with-quite-a-name-{number:02d}" for number in range(60)]
    views: dict[str, dict[str, Any]] = {}
    for name, child in zip(names, [*names[1:], None], strict=True):
        follows = {"dependents": [child], "dependents_count": 1} if child else {}
        views[name] = {"waiting": {"code": "dependency", "message": "w" * 200}, **follows}
    lines = drawn(Jobs(**views), names[0])
    assert max(map(len, lines)) <= COLUMNS
    assert all(any(name in line for line in lines) for name in names)


def test_a_tree_reads_a_bounded_number_of_jobs() -> None:
    children = [f"child-{number:03d}" for number in range(400)]
    views: dict[str, dict[str, Any]] = {name: {} for name in children}
    jobs = Jobs(root={"dependents": children, "dependents_count": 400}, **views)
    drawn(jobs, "root")
    assert len(jobs.asked) == MOST_JOBS


def test_a_parent_that_is_gone_is_shown_as_its_child_knows_it() -> None:
    jobs = Jobs(child={"after": after("old", state="completed")})
    assert drawn(jobs, "child") == ["old  completed", "   v afterok", "child  pending"]


def test_a_job_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFoundError):
        drawn(Jobs(), "nobody")
