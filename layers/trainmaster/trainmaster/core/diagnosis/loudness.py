"""What a line of a log gives itself out for: chatter that names a failure without being one, or a warning."""

import re

# A program without a GPU is told so by TensorFlow at level E, in the words of a broken image or GPU.
_NOISE = re.compile(
    r"NCCL INFO|caller indicates that this is not a failure|could not load dynamic library|\bdlerror\b"
    r"|failed call to cuInit|cannot dlopen some GPU libraries|kernel driver does not appear to be running"
    r"|could not find cuda drivers|unable to register cu\w{2,10} factory|TF-TRT Warning"
    r"|\(normal if no \w{1,20} installed\)|loss scale|job control in this shell|set terminal process group"
    r"|closing signal SIGTERM|PMIX_MCA",
    re.IGNORECASE,
)
_HEAD = 160
# NCCL says WARN of what it dies of.
_LAST_WORDS = re.compile(r"(?:NCCL|CCOM) WARN|\bNET/(?:OFI|IB)\b")
# Levels as logging, glog, c10 and TensorFlow write them.
_TOLD = re.compile(
    r"(?<![=\w])(?:INFO|DEBUG)\b|(?:^|[\[\s:])I(?:\d{3,4})? (?=[\d:. ]{0,30}[\w/]{1,80}[.\]\s/])"
)
_LEVEL = re.compile(
    r"(?<![=\w])WARN(?:ING)?\b|^warning: "
    r"|(?:^|[\[\s:])W(?:\d{3,4})? (?=[\d:. ]{0,30}[\w/]{1,80}[.\]\s/])"
)
_PYTHON_WARNING = re.compile(r"(?:^|[\s.:])[A-Z]?[a-z]{0,20}[A-Z]?[a-z]{0,20}Warning: ")


def is_noise(text: str) -> bool:
    return bool(_NOISE.search(text))


def is_told(text: str) -> bool:
    """Logged as something that is well."""
    head = text[:_HEAD]
    return not _LAST_WORDS.search(head) and bool(_TOLD.search(head))


def is_warning(text: str) -> bool:
    """Logged below the level of an error: often of something that was tried again, and then went well."""
    head = text[:_HEAD]
    return not _LAST_WORDS.search(head) and bool(_LEVEL.search(head) or _PYTHON_WARNING.search(text))
