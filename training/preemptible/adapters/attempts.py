"""One attempt of a script of any library: it notices a stop, marks what was saved, reports, and leaves.

The order at a save, and what a crash after each step leaves behind: the library writes (torn: no mark); all
ranks have written; the first rank marks the checkpoint (whole); the first rank replaces status.json (which
names the checkpoint before until then). A library writes into the folder itself, so a stop may tear a
checkpoint, and a mirror that was interrupted leaves a file out or cuts it: the mark has the size of each
file.
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
"""Whole checkpoints kept where no library removes them: a mirror uploads file by file, so its newest may be
torn."""
_STEP = re.compile(r"(?:checkpoint|step)-(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    step: int
    files: Mapping[str, int]
    """Size in bytes of each file, by its path below the checkpoint's folder."""
    saved_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One checkpoint's folder as it is on the disk, whole or torn."""

    name: str
    step: int
    mark: Mark | None
    files: Mapping[str, int]


def newest_of(checkpoints: list[Found], *, are_marked: bool) -> tuple[Found | None, dict[str, str]]:
    """Choose the newest whole checkpoint, and say what is wrong with each newer one, by its name.

    Args:
        checkpoints: All that are there, in any order.
        are_marked: The adapter was here before, so a checkpoint without a mark was never finished. Else
            checkpoints may have been written before it came, and are taken as the library would take them.
    """
    passed_over: dict[str, str] = {}
    for checkpoint in sorted(checkpoints, key=lambda checkpoint: -checkpoint.step):
        tear = _tear(checkpoint, are_marked=are_marked)
        if tear is None:
            return checkpoint, passed_over
        passed_over[checkpoint.name] = tear
    return None, passed_over


def _tear(checkpoint: Found, *, are_marked: bool) -> str | None:
    if checkpoint.mark is None:
        return "it was never finished" if are_marked else None
    for name, size in sorted(checkpoint.mark.files.items()):
        if name not in checkpoint.files:
            return f"{name} is missing"
        if checkpoint.files[name] != size:
            return f"{name} has {checkpoint.files[name]} bytes of {size}"
    return None


def found_in(folder: Path) -> list[Found]:
    return [
        Found(name=path.name, step=step, mark=_read_mark(path), files=_sizes(path))
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.is_dir() and (step := step_in(path.name)) is not None
    ]


def step_in(name: str) -> int | None:
    """Read the step in ``checkpoint-20`` or ``step-00000020``; None if the name is not a checkpoint's."""
    match = _STEP.fullmatch(name)
    return int(match[1]) if match else None


def write_mark(folder: Path, *, step: int, now: datetime) -> Mark:
    """Write the mark in one piece: a crash leaves it out, and the checkpoint counts as torn."""
    mark = Mark(step=step, files=_sizes(folder), saved_at=now.isoformat(timespec="milliseconds"))
    draft = folder / f".{MARK}"
    draft.write_text(json.dumps({"step": step, "files": dict(mark.files), "saved_at": mark.saved_at}))
    draft.rename(folder / MARK)
    return mark


def remove_mark(folder: Path) -> None:
    """Remove the mark before the checkpoint is written again: half of it must not count as whole."""
    (folder / MARK).unlink(missing_ok=True)


def remove_all_but(folder: Path, newest: int) -> None:
    """Keep this many of the newest whole checkpoints; remove all older ones, torn ones among them."""
    whole = sorted(
        (checkpoint.step for checkpoint in found_in(folder) if checkpoint.mark is not None), reverse=True
    )
    kept_from = whole[newest - 1] if len(whole) >= newest else 0
    for checkpoint in found_in(folder):
        if checkpoint.step < kept_from:
            shutil.rmtree(folder / checkpoint.name)


def _read_mark(folder: Path) -> Mark | None:
    """Read a checkpoint's mark; one that cannot be read was not finished, and counts as none."""
    try:
        content = json.loads((folder / MARK).read_bytes())
        return Mark(
            step=int(content["step"]), files=dict(content["files"]), saved_at=str(content["saved_at"])
        )
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def _sizes(folder: Path) -> dict[str, int]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    ours = {MARK, f".{MARK}"}
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size for path in files if path.name not in ours
    }


def newest_whole(folder: str | os.PathLike[str]) -> str | None:
    """Return the path of the checkpoint to resume from, or None if there is none yet.

    Prints a line for each newer checkpoint that is torn.
    """
    newest, passed_over = _newest(Path(folder))
    for name, why in passed_over.items():
        print(f"skipping torn checkpoint {name}: {why}", flush=True)
    return None if newest is None else str(Path(folder) / newest.name)


def step_of(checkpoint: str | None) -> int:
    """Read the step in the name of a checkpoint's path; 0 for None, which starts from scratch."""
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
    """One attempt of a job. It remembers SIGTERM from the moment it is made.

    Every rank makes one and calls the same methods in the same order.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, step: int, steps: int, now: Callable[[], datetime] = _now
    ) -> None:
        """Begin the attempt, with ``step`` steps done of the ``steps`` that the job is to have."""
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
        """Tell whether this rank got SIGTERM. It takes no vote: use it only where ranks may leave alone."""
        return self._stop.asked

    def is_asked_to_stop(self) -> bool:
        """Tell whether any rank got SIGTERM; all get the same answer, and leave after the same step."""
        self.is_leaving = self._agreement.now().stop
        return self.is_leaving

    def begin_save(self, name: str) -> Path:
        """Return the folder to save this checkpoint in; removes the mark that an earlier save left there."""
        if self._is_first:
            remove_mark(self._folder / name)
        return self._folder / name

    def saved(self, name: str, *, step: int, keep: int = 0) -> None:
        """Mark the checkpoint as whole once every rank has written its part; leave if a stop was asked for.

        ``keep`` is how many of the newest checkpoints stay; 0 where the library removes old ones.
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
        """Leave the program with the exit code of a job that is not finished.

        Raises:
            SystemExit: Always; whatever the script does after its training is for finished jobs.
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
        """Mark checkpoints from before the adapter came as whole, so that its coming loses no work."""
        if _status(self._folder).get("marked") is not True:
            for checkpoint in found_in(self._folder):
                if checkpoint.mark is None:
                    write_mark(self._folder / checkpoint.name, step=checkpoint.step, now=self._clock())

    def _report(self, state: str, step: int, *, reason: str = "") -> None:
        """Write ``status.json``, on the first rank alone.

        Docs/training/checkpoints.md explains its fields.
        """
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
