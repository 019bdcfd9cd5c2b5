"""Meaning of the exit codes of a training container.

From 129 on a code is 128 plus the signal that ended it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from trainmaster.core.diagnosis.signature import Certainty
from trainmaster.core.diagnosis.signatures_program import STOPPED
from trainmaster.core.diagnosis.signatures_resources import KILLED
from trainmaster.core.jobs.failures import FailureClass

# As SageMaker and its training toolkit write it: ", exit code: 1", "ExitCode 1", "Exit Code: 139".
_EXIT_CODE = re.compile(r"\bexit ?code:? {0,4}(-?\d{1,3})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    failure_class: FailureClass
    certainty: Certainty
    advice: str | None = None


# A process that leaves with -15 to -2 is seen with what a byte holds of it; 255 is used for anything.
_NEGATIVE = range(241, 255)

OTHER_EXIT = Exit(failure_class=FailureClass.USER_CODE, certainty=Certainty.EXIT)
# A launcher that loses a rank exits with 1; so these are the container's own main process.
EXITS: Mapping[int, Exit] = {
    126: Exit(failure_class=FailureClass.IMAGE, certainty=Certainty.SIGNAL),
    127: Exit(failure_class=FailureClass.IMAGE, certainty=Certainty.SIGNAL),
    132: Exit(
        failure_class=FailureClass.IMAGE,
        certainty=Certainty.SIGNAL,
        advice="Illegal instruction (SIGILL): the image was built for another processor; rebuild it.",
    ),
    134: Exit(
        failure_class=FailureClass.USER_CODE,
        certainty=Certainty.EXIT,
        advice="The program aborted (SIGABRT): read the last lines of its log.",
    ),
    135: Exit(
        failure_class=FailureClass.HOST_OOM,
        certainty=Certainty.SIGNAL,
        advice="Bus error (SIGBUS): shared memory ran out; use fewer data loader workers.",
    ),
    137: Exit(failure_class=FailureClass.HOST_OOM, certainty=Certainty.EXCEPTION, advice=KILLED),
    139: Exit(
        failure_class=FailureClass.USER_CODE,
        certainty=Certainty.EXCEPTION,
        advice="Native code crashed (SIGSEGV): look for a library that does not fit the others.",
    ),
    143: Exit(failure_class=FailureClass.UNKNOWN, certainty=Certainty.HINT, advice=STOPPED),
}
"""Meaning by exit code. 137 and 139: the main process itself was killed or crashed, so exceptions in the log
belong to other processes."""


def exit_of(code: int) -> Exit:
    """Return the meaning of an exit code; ``-9``, and what a shell makes of it (247), count as 137."""
    # A shell shows the code -9 as its byte, 247; as a signal it is 128 + 9.
    signal = -code if code < 0 else 256 - code if code in _NEGATIVE else None
    return EXITS.get(128 + signal if signal else code, OTHER_EXIT)


def exit_code_in(failure_reason: str | None) -> int | None:
    match = _EXIT_CODE.search(failure_reason or "")
    return int(match[1]) if match else None
