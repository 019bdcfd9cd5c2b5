"""Ranks that do not come, and ranks that go: said by name, and soon."""

import json
import signal
import socket
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from torch._C._distributed_c10d import HashStore, PrefixStore, Store, TCPStore

from training.errors import MeetingError, MissingRanksError
from training.ranks.roll_call import RollCall, Seat
from training.ranks.world import joined_world

pytestmark = pytest.mark.thorough

_HOSTS = json.dumps(["algo-1", "algo-2"])


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _env(rank: int, port: int) -> dict[str, str]:
    """Of a rank of a job of two hosts with a rank each."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "SM_HOSTS": _HOSTS,
        "SM_CURRENT_HOST": f"algo-{rank + 1}",
    }


def _failure_of_the_first_rank(folder: Path, port: int, *, join_seconds: str) -> str:
    """The failure file that the program leaves."""
    folders = {f"SM_{name}_DIR": str(folder / name.lower()) for name in ("CHECKPOINT", "MODEL", "OUTPUT")}
    (folder / "output").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "training.train", "--join_seconds", join_seconds, "--steps", "1"],
        env=_env(0, port) | folders,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return (folder / "output/failure").read_text()


def test_a_host_that_never_comes_is_named_in_the_failure_file_of_the_others(tmp_path: Path) -> None:
    assert _failure_of_the_first_rank(tmp_path, _free_port(), join_seconds="1") == (
        "host algo-2 (rank 1) did not join within 1 s; see what its log says, "
        "or raise join_seconds if it only starts late"
    )


@pytest.mark.long
def test_a_host_that_comes_and_dies_while_ranks_connect_is_named(tmp_path: Path) -> None:
    port = _free_port()

    def come() -> None:
        patience = timedelta(seconds=60)
        store = TCPStore("127.0.0.1", port, 2, is_master=False, wait_for_workers=False, timeout=patience)
        seat = Seat.from_env(_env(1, port))
        RollCall(PrefixStore("roll_call", store), seat).missing("join", seconds=30)

    threading.Thread(target=come, daemon=True).start()
    failure = _failure_of_the_first_rank(tmp_path, port, join_seconds="4")
    assert failure.startswith(
        "host algo-2 (rank 1) joined and does not answer any more; see what its log says: "
    )
    assert len(failure) < 400


def test_a_stop_while_others_are_waited_for_is_heard(tmp_path: Path) -> None:
    folders = {f"SM_{name}_DIR": str(tmp_path / name.lower()) for name in ("CHECKPOINT", "MODEL", "OUTPUT")}
    port = _free_port()
    waits = subprocess.Popen(
        [sys.executable, "-m", "training.train", "--join_seconds", "60", "--steps", "1"],
        env=_env(0, port) | folders,
        cwd=Path(__file__).parents[3],
    )
    TCPStore("127.0.0.1", port, 2, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=60))
    waits.terminate()  # it serves the place where ranks meet, so it waits there
    assert waits.wait(timeout=30) == -signal.SIGTERM


def test_without_the_first_host_the_others_say_where_it_should_have_been() -> None:
    port = _free_port()
    with (
        pytest.raises(MissingRanksError, match=f"rank 0, to be met at 127.0.0.1:{port}, did not join"),
        joined_world(_env(1, port), join_seconds=0.5),
    ):
        pass


def test_a_port_that_another_program_has_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        with (
            pytest.raises(MeetingError, match=f"rank 0 cannot listen at 127.0.0.1:{port}"),
            joined_world(_env(0, port), join_seconds=0.5),
        ):
            pass


def _calls(store: Store, ranks: dict[int, str], *, size: int, hosts: tuple[str, ...]) -> dict[int, str]:
    """What each of these ranks hears; ``ranks``: their hosts."""
    heard: dict[int, str] = {}

    def call(rank: int, host: str) -> None:
        seat = Seat(rank=rank, size=size, ranks_per_host=2, host=host, hosts=hosts)
        heard[rank] = RollCall(store, seat).missing("start", seconds=0.5)

    threads = [threading.Thread(target=call, args=one) for one in ranks.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return heard


def test_every_rank_that_is_here_hears_who_is_not() -> None:
    here = {0: "algo-1", 1: "algo-1", 2: "algo-10", 5: "algo-3"}
    heard = _calls(HashStore(), here, size=8, hosts=("algo-1", "algo-10", "algo-2", "algo-3"))
    who = "hosts algo-2, algo-3, algo-10 (ranks 3-4, 6-7)"
    assert heard == dict.fromkeys(here, who)


def test_nobody_is_missing_when_all_are_here() -> None:
    here = {0: "a", 1: "a", 2: "b", 3: "b"}
    assert _calls(HashStore(), here, size=4, hosts=()) == dict.fromkeys(here, "")
