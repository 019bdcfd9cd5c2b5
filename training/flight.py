"""Shows where a rank is, on SIGUSR1.

`python -m training.flight DIRECTORY` shows which rank is missing in what.

A rank writes the stacks of its threads to the log, by the handler of the signal itself, so also while it
waits in C++; and its last collectives into a file, its flight recorder, also after a timeout. In a process
group every rank has to call the same collectives in one order; a rank that is at an earlier one than the
others keeps them waiting. This does not import torch: a program that hangs while it is imported must answer
too.
"""

import contextlib
import faulthandler
import io
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.config.choices import DebugLevel
from training.config.environment import FLIGHT_RECORDER

_STDERR = 2
_SHOWN = 8
"""The most ranks that a line names."""


def answer(level: DebugLevel, recorder: str) -> None:
    """Answer SIGUSR1 from now on.

    ``recorder`` is the path of the flight recorder's dump, which the rank's number completes.
    """
    signal.signal(signal.SIGUSR1, _nothing)
    faulthandler.register(signal.SIGUSR1, file=_STDERR, all_threads=True, chain=True)
    if level is DebugLevel.OFF:
        return
    # The main thread may be the one that hangs, and a handler in Python runs there alone. The number of the
    # signal is written into this socket at once.
    read, write = socket.socketpair()
    write.setblocking(False)
    signal.set_wakeup_fd(write.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_dump, args=(read, write, recorder), name="flight recorder", daemon=True).start()


def _nothing(*_: object) -> None:
    """Do nothing: a handler of Python's keeps SIGUSR1 from ending the process."""


def _dump(read: socket.socket, _open: socket.socket, recorder: str) -> None:
    """Write the dump at each SIGUSR1; before there is a process group there is nothing to write."""
    while numbers := read.recv(64):
        distributed = sys.modules.get("torch.distributed")
        if signal.SIGUSR1 not in numbers or distributed is None or not distributed.is_initialized():
            continue
        with contextlib.suppress(OSError, AttributeError, RuntimeError):
            path = Path(f"{recorder}{distributed.get_rank()}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(sys.modules["torch._C._distributed_c10d"]._dump_fr_trace())  # noqa: SLF001  no public way


class FlightError(Exception):
    """Its message alone tells the user what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A collective, as a rank called it."""

    number: int
    """Number among the collectives of its process group, from 1 on."""
    name: str
    sizes: str
    where: str
    """The innermost lines of the program that called it; empty if they were not recorded."""

    @property
    def described(self) -> str:
        return f"{self.name} {self.sizes}" + (f" called in {self.where}" if self.where else "")


Newest = Mapping[int, Call]
"""The newest call of each rank of one process group."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401  pickle's
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a flight recorder's dump")


def read(directory: Path) -> dict[int, dict[str, Any]]:
    """Read the dumps in a directory, by rank.

    Raises:
        FlightError: There are none, or one cannot be read.
    """
    files = {path: path.name.removeprefix(FLIGHT_RECORDER) for path in directory.glob(f"{FLIGHT_RECORDER}*")}
    dumps = {}
    for path, rank in files.items():
        if not rank.isdigit():
            continue
        try:
            dumps[int(rank)] = dict(_Plain(io.BytesIO(path.read_bytes())).load())
        except (pickle.UnpicklingError, EOFError, ValueError, TypeError, OSError, AttributeError) as error:
            raise FlightError(f"{path} cannot be read as a dump of a flight recorder: {error}") from error
    if not dumps:
        raise FlightError(
            f"there is no {FLIGHT_RECORDER}RANK in {directory}; a job writes them with debug=info or "
            "debug=detail, when it hangs or a collective times out"
        )
    return dumps


def groups_of(dumps: Mapping[int, Mapping[str, Any]]) -> Mapping[str, Newest]:
    """Find the newest call of each rank in each process group, by the group's name."""
    groups: dict[str, dict[int, Call]] = {}
    for rank, dump in sorted(dumps.items()):
        for entry in dump.get("entries", ()):
            if entry.get("is_p2p"):
                continue
            name, description = (*entry["process_group"], "")[:2]
            group = groups.setdefault(f"{name} ({description})" if description else str(name), {})
            call = _call(entry)
            if rank not in group or group[rank].number <= call.number:
                group[rank] = call
    return groups


def _call(entry: Mapping[str, Any]) -> Call:
    ours = [frame for frame in entry.get("frames", ()) if "/torch/" not in frame["filename"]]
    lines = [f"{Path(frame['filename']).name}:{frame['line']}" for frame in ours[:2]]
    return Call(
        number=entry["collective_seq_id"],
        name=entry["profiling_name"],
        sizes="x".join(str(size) for size in entry.get("input_sizes", ())),
        where=" < ".join(lines),
    )


def verdicts(groups: Mapping[str, Newest], ranks: Sequence[int]) -> Iterator[str]:
    """Yield a line for each process group in which ranks are at different calls, or call different things."""
    for name, calls in groups.items():
        newest = max(call.number for call in calls.values())
        ahead = [rank for rank, call in calls.items() if call.number == newest]
        behind = {rank: call for rank, call in calls.items() if call.number < newest}
        expected = calls[ahead[0]]
        for number in sorted({call.number for call in behind.values()}):
            those = [rank for rank, call in behind.items() if call.number == number]
            yield (
                f"group {name}: {_ranks(those)} missing in collective {number + 1}; newest call there: "
                f"{number}, {behind[those[0]].described}; {_ranks(ahead)} at {newest}, {expected.described}"
            )
        different = [rank for rank in ahead if (calls[rank].name, calls[rank].sizes) != _what(expected)]
        if different:
            yield (
                f"group {name}: at collective {newest} {_ranks(different)} calling "
                f"{calls[different[0]].described}, {_ranks(ahead[:1])} calling {expected.described}"
            )
        if name.startswith("0") and (silent := [rank for rank in ranks if rank not in calls]):
            yield f"group {name}: {_ranks(silent)} without any collective"


def _what(call: Call) -> tuple[str, str]:
    return call.name, call.sizes


def _ranks(numbers: Sequence[int]) -> str:
    remainder = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    listed = ", ".join(str(number) for number in numbers[:_SHOWN])
    return f"rank {listed} is" if len(numbers) == 1 else f"ranks {listed}{remainder} are"


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m training.flight DIRECTORY", file=sys.stderr)
        return 2
    try:
        dumps = read(Path(arguments[0]))
    except FlightError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    ranks = sorted(dumps)
    gaps = [rank for rank in range(ranks[-1]) if rank not in dumps]
    print(f"dumps of {len(ranks)} ranks" + (f"; {_ranks(gaps)} without one" if gaps else ""))
    lines = list(verdicts(groups_of(dumps), ranks))
    print("\n".join(lines) or "all ranks are at the same collective in every group")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
