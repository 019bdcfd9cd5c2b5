"""Maps each error to its exit code."""

from enum import IntEnum

from trainmaster_client.errors import (
    ApiFailedError,
    ApiNotConfiguredError,
    ApiUnreachableError,
    InvalidApiUrlError,
    InvalidArgumentError,
    InvalidOptionsError,
    MalformedHistoryError,
    NotFoundError,
    TrainmasterClientError,
    UnexpectedAnswerError,
)


class ExitCode(IntEnum):
    OK = 0
    REFUSED = 1
    """The API refused, or the caller is not let in: credentials, rights, the policy, the job's state."""
    USAGE = 2
    """The command line or the file is wrong; nothing was sent."""
    UNREACHABLE = 3
    """No API found, no answer, or its own failure: the same command may work later."""
    NOT_FOUND = 4
    """No such job, or another team's; no such revision."""
    INTERRUPTED = 130
    """Ctrl-C, as shells say it."""


_BY_ERROR: dict[type[BaseException], ExitCode] = {
    InvalidArgumentError: ExitCode.USAGE,
    InvalidOptionsError: ExitCode.USAGE,
    MalformedHistoryError: ExitCode.USAGE,
    ApiNotConfiguredError: ExitCode.UNREACHABLE,
    InvalidApiUrlError: ExitCode.UNREACHABLE,
    ApiUnreachableError: ExitCode.UNREACHABLE,
    UnexpectedAnswerError: ExitCode.UNREACHABLE,
    ApiFailedError: ExitCode.UNREACHABLE,
    NotFoundError: ExitCode.NOT_FOUND,
    TrainmasterClientError: ExitCode.REFUSED,
}


def exit_code(error: TrainmasterClientError) -> ExitCode:
    """Return the exit code of the error's nearest class that has one."""
    return next(_BY_ERROR[kind] for kind in type(error).__mro__ if kind in _BY_ERROR)
