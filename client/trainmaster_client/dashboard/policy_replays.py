"""Replays of a policy for the Policy page: one at a time, each in a process of its own beside the gateway.

The process gets the question on its standard input and writes what it comes to on its standard output, a line
of JSON each. It ends when that input does, so none outlives a gateway, however it went.
"""

import base64
import binascii
import json
import os
import re
import signal
import subprocess
import sys
import threading
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from trainmaster_client.gateway.json_protocol import CallRefusedError

PROGRAM = (sys.executable, "-P", "-m", "trainmaster_client.dashboard.replay_program")
"""``-P``: nothing of the folder that the gateway was started in is taken for a module."""
_ID = re.compile(r"[0-9a-f]{32}")
_END_SECONDS = 5.0
LARGEST_TEXT_BYTES = 100 * 1024
"""Longest text of a policy that the API takes."""


class ReplayState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(slots=True, kw_only=True)
class _Replay:
    id: str
    process: subprocess.Popen[str]
    state: ReplayState = ReplayState.RUNNING
    doing: str = "Reading the history"
    share: float | None = None
    """Share of the work that is done, 0 to 1; None if not known yet."""
    error: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    report: str = ""
    """The report in HTML."""

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "state": self.state,
            "doing": self.doing,
            "share": self.share,
            "error": self.error,
            "result": self.result,
            "has_report": bool(self.report),
        }


class PolicyReplays:
    """Threads may share it. Only the newest replay is kept, in memory.

    Args:
        api_url: Whose history is replayed; credentials are those of the environment.
        program: What the process runs.
    """

    def __init__(self, *, api_url: str, program: Sequence[str] | None = None) -> None:
        self._api_url = api_url
        self._program = program or PROGRAM
        self._lock = threading.Lock()
        self._newest: _Replay | None = None

    def start(self, replay_id: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Start a replay; a repeated id is the same replay. Raises CallRefusedError if another runs."""
        if not _ID.fullmatch(replay_id):
            raise CallRefusedError("ValidationException", "The id of a replay is 32 hexadecimal digits.")
        with self._lock:
            newest = self._newest
            if newest is not None and newest.id == replay_id:
                return newest.as_json()
            if newest is not None and newest.state is ReplayState.RUNNING:
                raise CallRefusedError(
                    "Conflict",
                    "A replay runs already, perhaps in another tab. Wait for it, or cancel it there.",
                    status=HTTPStatus.CONFLICT,
                )
            self._newest = _Replay(id=replay_id, process=self._process(question))
            threading.Thread(target=self._listen, args=(self._newest,), daemon=True).start()
            return self._newest.as_json()

    def look(self, replay_id: str) -> dict[str, Any]:
        with self._lock:
            return self._found(replay_id).as_json()

    def cancel(self, replay_id: str) -> dict[str, Any]:
        """Cancel a replay; one that is over stays as it is."""
        with self._lock:
            replay = self._found(replay_id)
            if replay.state is ReplayState.RUNNING:
                replay.state = ReplayState.CANCELLED
                with suppress(ProcessLookupError):  # it is over at this moment
                    os.killpg(replay.process.pid, signal.SIGKILL)
            return replay.as_json()

    def report(self, replay_id: str) -> str:
        """Return the report as HTML in one file."""
        with self._lock:
            replay = self._found(replay_id)
            if not replay.report:
                raise _not_there("This replay has no report yet.")
            return replay.report

    def _found(self, replay_id: str) -> _Replay:
        if self._newest is None or self._newest.id != replay_id:
            raise _not_there("There is no such replay any more: only the newest one is kept.")
        return self._newest

    def _process(self, question: Mapping[str, Any]) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # noqa: S603  this very Python
            self._program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TRAINMASTER_API_URL": self._api_url},
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the gateway, whose end ends it
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it is over already, and what it ended with is reported
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
        return process

    def _listen(self, replay: _Replay) -> None:
        """Read the process's messages until it ends; runs in a thread."""
        assert replay.process.stdout is not None
        assert replay.process.stdin is not None
        for line in replay.process.stdout:
            self._heard(replay, json.loads(line))
        replay.process.stdout.close()
        with suppress(BrokenPipeError):
            replay.process.stdin.close()
        try:
            code = replay.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            replay.process.kill()
            code = replay.process.wait()
        with self._lock:
            if replay.state is ReplayState.RUNNING:
                replay.state = ReplayState.FAILED
                replay.error = f"The replay's process ended with code {code} before it came to a result."

    def _heard(self, replay: _Replay, message: Mapping[str, Any]) -> None:
        with self._lock:
            if replay.state is not ReplayState.RUNNING:
                return
            match message:
                case {"error": str(error)}:
                    replay.state, replay.error = ReplayState.FAILED, error
                case {"result": dict(result), "report": str(report)}:
                    replay.result, replay.report, replay.share = result, report, 1.0
                    replay.state = ReplayState.DONE
                case {"doing": str(doing), "share": share}:
                    replay.doing, replay.share = doing, share
                case _:
                    replay.error = "The replay's process said something that is not understood."
                    replay.state = ReplayState.FAILED


def _not_there(message: str) -> CallRefusedError:
    return CallRefusedError("NotFound", message, status=HTTPStatus.NOT_FOUND)


def unpacked(header: str) -> str:
    """Unpack the text of a policy: deflated (zlib), as base64 for URLs. Raises CallRefusedError."""
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(base64.urlsafe_b64decode(header), LARGEST_TEXT_BYTES)
        text = content.decode()
    except (binascii.Error, zlib.error, ValueError) as error:
        raise CallRefusedError("ValidationException", f"The policy did not arrive whole: {error}.") from error
    if unpacking.eof:
        return text
    if len(content) == LARGEST_TEXT_BYTES:
        problem = f"The policy has more than {LARGEST_TEXT_BYTES // 1024} KiB of text."
        raise CallRefusedError("ValidationException", problem)
    raise CallRefusedError("ValidationException", "The policy did not arrive whole: its end is missing.")
