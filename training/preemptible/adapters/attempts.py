"""One attempt of a script of any library: it hears of a stop, marks what was saved, reports, and leaves.

The order at a save, and what a crash after each leaves behind: the library writes (torn: no mark); all ranks
have written; the first marks the checkpoint (whole); the first replaces status.json (it tells of the one
before until then). A library writes into the folder itself, so a stop may tear a checkpoint, and a mirror
that was interrupted leaves a file out or cuts it: the mark has the size of each file.
"""

import atexit
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import torch.distributed as dist

from training.preemptible.agreement import Agreement
from training.preemptible.preempt import EXIT_PREEMPTED, StopRequest

MARK = "whole.json"
_STATUS = "status.json"
KEPT = 2
"""Checkpoints, where no library removes them: a mirror uploads file by file, so its newest may be torn."""
_STEP = re.compile(r"(?:checkpoint|step)-(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    step: int
    files: Mapping[str, int]
    """Bytes by path below the folder."""
    saved_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One folder as it lies there."""

    name: str
    step: int
    mark: Mark | None
    files: Mapping[str, int]


def newest_of(found: list[Found], *, are_marked: bool) -> tuple[Found | None, dict[str, str]]:
    """The newest that is whole, and what is wrong with each newer one, by its name.

    Args:
        found: In any order.
        are_marked: The adapter was here before, so what has no mark was never finished. Else checkpoints
            may have been written before it came, and are taken as the library would take them.
    """
    passed_over: dict[str, str] = {}
    for one in sorted(found, key=lambda one: -one.step):
        why = _tear(one, are_marked=are_marked)
        if why is None:
            return one, passed_over
        passed_over[one.name] = why
    return None, passed_over


def _tear(one: Found, *, are_marked: bool) -> str | None:
    if one.mark is None:
        return "it was never finished" if are_marked else None
    for name, size in sorted(one.mark.files.items()):
        if name not in one.files:
            return f"{name} is missing"
        if one.files[name] != size:
            return f"{name} has {one.files[name]} bytes of {size}"
    return None


def found_in(folder: Path) -> list[Found]:
    return [
        Found(name=path.name, step=step, mark=_read_mark(path), files=_sizes(path))
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.is_dir() and (step := step_in(path.name)) is not None
    ]


def step_in(name: str) -> int | None:
    """Of ``checkpoint-20`` and ``step-00000020``; None: it is no checkpoint's name."""
    match = _STEP.fullmatch(name)
    return int(match[1]) if match else None


def write_mark(folder: Path, *, step: int, now: datetime) -> Mark:
    """In one piece: a crash leaves it out, and the checkpoint counts as torn."""
    mark = Mark(step=step, files=_sizes(folder), saved_at=now.isoformat(timespec="milliseconds"))
    draft = folder / f".{MARK}"
    draft.write_text(json.dumps({"step": step, "files": dict(mark.files), "saved_at": mark.saved_at}))
    draft.rename(folder / MARK)
    return mark


def remove_mark(folder: Path) -> None:
    """Before it is written again: half of it must not count as the whole that it was."""
    (folder / MARK).unlink(missing_ok=True)


def remove_all_but(folder: Path, newest: int) -> None:
    """Of the whole ones keep this many; what is torn goes with those that are older."""
    whole = sorted((one.step for one in found_in(folder) if one.mark is not None), reverse=True)
    kept_from = whole[newest - 1] if len(whole) >= newest else 0
    for one in found_in(folder):
        if one.step < kept_from:
            shutil.rmtree(folder / one.name)


def _read_mark(folder: Path) -> Mark | None:
    """One that cannot be read was not written by us to its end: as if there were none."""
    try:
        said = json.loads((folder / MARK).read_bytes())
        return Mark(step=int(said["step"]), files=dict(said["files"]), saved_at=str(said["saved_at"]))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def _sizes(folder: Path) -> dict[str, int]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    ours = {MARK, f".{MARK}"}
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size for path in files if path.name not in ours
    }


def newest_whole(folder: str | os.PathLike[str]) -> str | None:
    """The checkpoint to resume from; None: there is none yet. Each torn one that is newer gets a line."""
    found, passed_over = _newest(Path(folder))
    for name, why in passed_over.items():
        print(f"skipping torn checkpoint {name}: {why}", flush=True)
    return None if found is None else str(Path(folder) / found.name)


def step_of(checkpoint: str | None) -> int:
    """As its name says; 0: from scratch."""
    return 0 if checkpoint is None else step_in(Path(checkpoint).name) or 0


def _newest(folder: Path) -> tuple[Found | None, dict[str, str]]:
    return newest_of(found_in(folder), are_marked=_status(folder).get("marked") is True)


def _status(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / _STATUS).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return {}


def _end_process_groups() -> None:
    """End what the script left of torch.distributed, while the interpreter is whole.

    A thread of gloo that lets go of its last tensor later aborts the process, and a job that is done would
    end with exit code 1 (pytorch/pytorch#179291).
    """
    if dist.is_initialized():
        dist.destroy_process_group()


def _now() -> datetime:
    return datetime.now(UTC)


class Attempt:
    """From its making on SIGTERM is remembered; every rank makes one, and calls the same in one order."""

    def __init__(
        self, folder: str | os.PathLike[str], *, step: int, steps: int, now: Callable[[], datetime] = _now
    ) -> None:
        """``step``: that are done; ``steps``: that there will be."""
        self._folder, self._steps, self._clock = Path(folder), steps, now
        self._is_first = not dist.is_initialized() or dist.get_rank() == 0
        self._stop = StopRequest().__enter__()
        self._agreement = Agreement(self._stop)
        if self._is_first:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._mark_earlier_ones()
        newest, self._skipped = _newest(self._folder)
        self._newest = (
            None if newest is None else (newest.name, newest.step, newest.mark and newest.mark.saved_at)
        )
        self.is_leaving = False
        self._report("running", step)

    def listen(self) -> None:
        """Take SIGTERM again, from a library that has put a handler of its own in place since."""
        self._stop.listen()

    def expect(self, steps: int) -> None:
        """Correct how many steps there will be, where that is known only after the attempt began."""
        self._steps = steps

    @property
    def is_heard(self) -> bool:
        """Whether this rank was asked to stop; no vote, so only where every rank may leave alone."""
        return self._stop.asked

    def is_asked_to_stop(self) -> bool:
        """Whether any rank was; all get the same answer, and leave after the same step."""
        self.is_leaving = self._agreement.now().stop
        return self.is_leaving

    def begin_save(self, name: str) -> Path:
        """Where it goes, below the folder of all."""
        if self._is_first:
            remove_mark(self._folder / name)
        return self._folder / name

    def saved(self, name: str, *, step: int, keep: int = 0) -> None:
        """Call it when this rank has written its part; leaves if that was asked for.

        ``keep``: how many of the newest stay; 0: the library removes them.
        """
        self._agreement.now()  # the others have written theirs
        if self._is_first:
            mark = write_mark(self._folder / name, step=step, now=self._clock())
            self._newest = (name, step, mark.saved_at)
            if keep:
                remove_all_but(self._folder, keep)
        self._report("running", step)
        if self.is_leaving:
            self.leave(step)

    def leave(self, step: int) -> NoReturn:
        """With the exit code of a job that is not finished.

        Raises:
            SystemExit: Always; whatever the script does after its training is for finished ones.
        """
        self._report("preempted", step, reason="SIGTERM")
        if self._is_first:
            is_saved = self._newest is not None and self._newest[1] == step
            rest = "its checkpoint is saved" if is_saved else "nothing was saved since"
            print(f"stopped on SIGTERM after step={step}; {rest}", flush=True)
        if dist.is_initialized():
            dist.destroy_process_group()  # else gloo's threads may abort the interpreter at its end
        raise SystemExit(EXIT_PREEMPTED)

    def completed(self, step: int) -> None:
        """Report the end; from here on SIGTERM does what it did before.

        The process groups stay for what the script does next, and are ended when the interpreter begins to.
        """
        self._report("completed", step)
        self._stop.__exit__()
        atexit.register(_end_process_groups)

    def _mark_earlier_ones(self) -> None:
        """Those from before the adapter came: taken as they are, so that no work is lost by its coming."""
        if _status(self._folder).get("marked") is not True:
            for one in found_in(self._folder):
                if one.mark is None:
                    write_mark(self._folder / one.name, step=one.step, now=self._clock())

    def _report(self, state: str, step: int, *, reason: str = "") -> None:
        """The first rank alone writes; what the fields mean says docs/training/checkpoints.md."""
        if not self._is_first:
            return
        name, saved, saved_at = self._newest or (None, 0, None)
        document = {
            "state": state,
            "step": step,
            "steps": self._steps,
            "checkpoint": name,
            "checkpoint_at": saved_at,
            "updated_at": self._clock().isoformat(timespec="milliseconds"),
            "lost_steps": max(0, step - saved),
            "reason": reason,
            "skipped": [{"checkpoint": name, "reason": why} for name, why in self._skipped.items()],
            "marked": True,
        }
        draft = self._folder / f".{_STATUS}"
        draft.write_text(json.dumps(document, indent=1))
        draft.rename(self._folder / _STATUS)
