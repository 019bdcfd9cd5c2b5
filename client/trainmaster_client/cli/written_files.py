"""Files that a command writes where its user says."""

from pathlib import Path

from trainmaster_client.errors import InvalidArgumentError


def write_text(file: Path, text: str, *, option: str) -> None:
    """Write the file, and make the folders above it.

    Raises:
        InvalidArgumentError: It cannot be written; ``option`` names the one that named the file.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(file, error, option=option) from error


def unwritable(file: Path, error: OSError, *, option: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{file} cannot be written: {error.strerror or error}.", hint=f"Name another with {option}."
    )
