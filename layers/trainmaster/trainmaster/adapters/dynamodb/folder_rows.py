"""Implement FolderRegister: a row for each folder with the last jobs that named it, which expires."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.calls import Rows, SortKeys
from trainmaster.adapters.dynamodb.retention import FOLDERS, ttl
from trainmaster.core.submission.shared_folders import JobFolder, Use

MOST_JOBS = 8
"""Most jobs that a folder's row remembers: those that named it last."""
MOST_ABOVE = 12
"""Parent folders that are looked up, from the bucket down; deeper ones are left out."""
MOST_NEAR = 8
"""Folders looked up below a folder, and in the same number before it in order of key."""
LONGEST_KEY = 900
"""Bytes of a folder's key; a sort key may have 1,024, and a longer folder is not remembered."""


class DynamoFolders:
    """Costs a submission 1 RCU for each part of its paths, read in one batch, and 1 WCU for each folder.

    A checkpoint folder costs two further queries of 1 RCU each.
    """

    def __init__(self, client: Any, *, table: str) -> None:
        self._rows = Rows(client, table=table)

    def near(self, folders: Iterable[JobFolder]) -> tuple[JobFolder, ...]:
        wanted = [folder for folder in folders if _is_kept(folder)]
        keys = dict.fromkeys(key for folder in wanted for key in _at_and_above(folder))
        items = list(self._rows.several(keys))
        for folder in wanted:
            if folder.use is Use.SAVES:
                items += self._beside(folder)
        return tuple(dict.fromkeys(neighbour for row in items for neighbour in _jobs_in(row)))

    def note(self, folders: Iterable[JobFolder], *, near: Iterable[JobFolder], at: datetime) -> None:
        """Note the jobs by folder.

        Two concurrent submissions may lose one of the names; the next warning then names the other.
        """
        rows: defaultdict[layout.Key, list[JobFolder]] = defaultdict(list)
        named = [folder for folder in folders if _is_kept(folder)]
        for folder in named:
            rows[_key(folder)].append(folder)
        for folder in near:
            if _key(folder) in rows and folder not in rows[_key(folder)]:
                rows[_key(folder)].append(folder)
        for key, jobs in rows.items():
            self._put(key, jobs[:MOST_JOBS], at=at)

    def _beside(self, folder: JobFolder) -> Iterator[dict[str, Any]]:
        """Yield rows of folders that begin with this one, and the nearest before it: ``a`` begins ``ab``."""
        partition, key = _key(folder)
        is_open = bool(folder.key) and not folder.key.endswith("/")
        below = key if is_open else f"{key.rstrip('/')}/"
        yield from self._rows.first(partition, SortKeys.beginning(below), most=MOST_NEAR)[0]
        before = self._rows.query(partition, SortKeys.before(key), backwards=True, page=MOST_NEAR)
        yield from islice(before, MOST_NEAR)

    def _put(self, key: layout.Key, jobs: list[JobFolder], *, at: datetime) -> None:
        item = {
            "pk": key[0],
            "sk": key[1],
            "bucket": jobs[0].bucket,
            "jobs": [{"job": folder.job, "use": folder.use.value, "key": folder.key} for folder in jobs],
            "ttl": ttl(at, FOLDERS),
        }
        self._rows.change("put_item", Item=to_attributes(item))


def _is_kept(folder: JobFolder) -> bool:
    return len(folder.key.encode()) <= LONGEST_KEY


def _key(folder: JobFolder) -> layout.Key:
    return layout.folder_key(folder.bucket, folder.key)


def _at_and_above(folder: JobFolder) -> Iterator[layout.Key]:
    """Yield the key of the folder, and those of its parents from the bucket down."""
    yield _key(folder)
    ends = (number for number, letter in enumerate(folder.written) if letter == "/")
    yield layout.folder_key(folder.bucket, "")
    for end in islice(ends, MOST_ABOVE):
        yield layout.folder_key(folder.bucket, folder.written[:end])


def _jobs_in(item: dict[str, Any]) -> Iterator[JobFolder]:
    """Yield the jobs of a row, the newest first; uses that only a later release knows are left out."""
    known = {use.value for use in Use}
    for job in item.get("jobs", ()):
        if job.get("use") in known:
            yield JobFolder(job=job["job"], use=Use(job["use"]), bucket=item["bucket"], key=job["key"])
