"""``python -m tests.house.subjects FILE``: whether the subject of a commit message is one line that fits.

The hook ``commit-msg`` of ``make hooks`` gives the file that git has written the message to.
"""

import sys
from pathlib import Path

LONGEST = 72
"""Characters; what ``git log --oneline`` shows in 80 columns."""


def subject_error(message: str) -> str | None:
    """Return what is wrong with the first lines of a message and what to do; None if nothing is.

    Messages that git writes itself (merges, reverts, fix-ups) are left as they are.
    """
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0].strip() if lines else ""
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return None
    if not subject:
        return "the subject is empty: say in the first line what the commit does"
    if len(subject) > LONGEST:
        return (
            f"the subject has {len(subject)} characters, {LONGEST} are allowed: say what the commit does "
            "in the first line, and why in the lines after a blank one"
        )
    if len(lines) > 1 and lines[1].strip():
        return "the second line is not blank: git takes the first paragraph for the subject"
    return None


def main(path: str) -> int:
    error = subject_error(Path(path).read_text(encoding="utf-8"))
    if error is not None:
        sys.stderr.write(f"commit message: {error}\n")
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
