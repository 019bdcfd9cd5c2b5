"""O13: who named which folder last; the table finds every folder that meets with one, at a bounded price."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from trainmaster.adapters.dynamodb import DynamoFolders
from trainmaster.adapters.dynamodb.folder_rows import LONGEST_KEY, MOST_JOBS
from trainmaster.core.submission.shared_folders import JobFolder, Use
from trainmaster.ports import FolderRegister

from tests.builders import NOON
from tests.integration.conftest import make_table
from tests.memory.folders import MemoryFolders

NUMBERS = count()


class Counted:
    """A client that notes which operations are called."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.called.append(name)
        return getattr(self._client, name)


@pytest.fixture
def table(client: Any) -> Iterator[str]:
    name = f"folders-{next(NUMBERS)}"
    make_table(client, name)
    yield name
    client.delete_table(TableName=name)


@pytest.fixture(params=["dynamodb", "in_memory"])
def register(request: pytest.FixtureRequest) -> FolderRegister:
    makers: dict[str, Callable[[], FolderRegister]] = {
        "dynamodb": lambda: DynamoFolders(
            request.getfixturevalue("client"), table=request.getfixturevalue("table")
        ),
        "in_memory": MemoryFolders,
    }
    return makers[request.param]()


def saves(job: str, key: str) -> JobFolder:
    return JobFolder(job=job, use=Use.SAVES, bucket="b", key=key)


def writes(job: str, key: str) -> JobFolder:
    return JobFolder(job=job, use=Use.WRITES, bucket="b", key=key)


def note(register: FolderRegister, *folders: JobFolder) -> None:
    for folder in folders:
        register.note([folder], near=register.near([folder]), at=NOON)


def met(register: FolderRegister, mine: JobFolder) -> list[str]:
    return [theirs.job for theirs in register.near([mine]) if theirs.meets(mine)]


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        (saves("o", "c"), saves("m", "c/")),
        (saves("o", ""), saves("m", "a/b/c")),
        (saves("o", "a/b/c"), saves("m", "")),
        (saves("o", "a/b"), saves("m", "a/b/c/d")),
        (saves("o", "a/b/c/d/"), saves("m", "a/b/")),
        (saves("o", "run"), saves("m", "run-2")),
        (saves("o", "run-2/x"), saves("m", "run")),
        (writes("o", "out"), saves("m", "out/")),
        (saves("o", "out"), writes("m", "out")),
        (saves("o", "out"), writes("m", "out/deep/er")),
    ],
)
def test_a_folder_that_meets_is_found_in_either_order(
    register: FolderRegister, theirs: JobFolder, mine: JobFolder
) -> None:
    note(register, theirs)
    assert met(register, mine) == ["o"]


def test_of_one_folder_the_last_that_named_it_comes_first(register: FolderRegister) -> None:
    note(register, *(saves(f"j{number}", "c") for number in range(4)))
    assert met(register, saves("m", "c")) == ["j3", "j2", "j1", "j0"]


def test_a_job_that_names_a_folder_twice_is_in_it_once(register: FolderRegister) -> None:
    both = [saves("o", "x"), writes("o", "x/")]
    register.note(both, near=register.near(both), at=NOON)
    assert sorted(one.use for one in register.near([saves("m", "x")])) == ["saves", "writes"]


def test_many_folders_beside_one_hide_none_that_meets(client: Any, table: str) -> None:
    register = DynamoFolders(client, table=table)
    note(register, saves("inner", "p/run/x"), saves("outer", "p"))
    note(register, *(saves(f"n{number:03}", f"p/run-{number:03}/") for number in range(40)))
    assert set(met(register, saves("m", "p/run/"))) == {"inner", "outer"}


def test_a_row_keeps_the_last_few_jobs_and_goes_by_itself(client: Any, table: str) -> None:
    register = DynamoFolders(client, table=table)
    note(register, *(saves(f"j{number}", "c") for number in range(MOST_JOBS + 5)))
    (item,) = client.scan(TableName=table)["Items"]
    assert len(item["jobs"]["L"]) == MOST_JOBS
    assert int(item["ttl"]["N"]) > NOON.timestamp() + 100 * 86_400


def test_what_a_submission_costs_is_bounded_whatever_lies_around(client: Any, table: str) -> None:
    counted = Counted(client)
    register = DynamoFolders(counted, table=table)
    note(register, *(saves(f"n{number:03}", f"p/{number:03}") for number in range(60)))
    counted.called.clear()
    mine = [saves("m", "p/q/r"), writes("m", "out")]
    register.note(mine, near=register.near(mine), at=NOON)
    assert counted.called == ["batch_get_item", "query", "query", "put_item", "put_item"]
    counted.called.clear()
    mine = [writes("m", "out")]
    register.note(mine, near=register.near(mine), at=NOON)
    assert counted.called == ["batch_get_item", "put_item"]


def test_a_folder_too_long_for_a_key_is_left_out(client: Any, table: str) -> None:
    register = DynamoFolders(client, table=table)
    note(register, saves("o", "x" * (LONGEST_KEY + 1)))
    assert client.scan(TableName=table)["Items"] == []


def test_what_a_later_release_wrote_is_left_out(client: Any, table: str) -> None:
    register = DynamoFolders(client, table=table)
    jobs = [{"M": {"job": {"S": "o"}, "use": {"S": "streams"}, "key": {"S": "c"}}}]
    item = {"pk": {"S": "F#b"}, "sk": {"S": "/c"}, "bucket": {"S": "b"}, "jobs": {"L": jobs}}
    client.put_item(TableName=table, Item=item)
    assert register.near([saves("m", "c")]) == ()
