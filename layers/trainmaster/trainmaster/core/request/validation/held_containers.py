"""Check the tag of a job that waits for a visitor of its container against the rest of its request."""

from collections.abc import Iterator
from datetime import timedelta

from trainmaster.core.errors import BadOptionError
from trainmaster.core.field_paths import Path
from trainmaster.core.jobs.hold_open import read_hold_open
from trainmaster.core.request.completion import DEFAULT_RUNTIME
from trainmaster.core.request.options import HOLD_OPEN
from trainmaster.core.request.strict_json import Mistake
from trainmaster.core.request.validation.sections import Section, elements, section, text, whole_number


def hold_open_mistakes(body: Section) -> Iterator[Mistake]:
    """Yield what keeps visitors out, and a wait that takes all of the job's time.

    A value that is no duration is reported as a tag.
    """
    for index, tag in elements(body, "Tags"):
        if text(tag, "Key") == HOLD_OPEN:
            yield from _closed(body, ("Tags", index))
            yield from _too_long(body, text(tag, "Value") or "", ("Tags", index, "Value"))


def _closed(body: Section, at: Path) -> Iterator[Mistake]:
    if (section(body, "RemoteDebugConfig") or {}).get("EnableRemoteDebug") is not True:
        message = f"{HOLD_OPEN} needs remote debugging: without it nobody can open a session in the container"
        hint = 'add "RemoteDebugConfig": {"EnableRemoteDebug": true}, or remove the tag'
        yield Mistake(at, message, hint)
    if body.get("EnableNetworkIsolation") is True:
        message = f"{HOLD_OPEN} cannot be used together with EnableNetworkIsolation, which keeps visitors out"
        yield Mistake(at, message, "set EnableNetworkIsolation to false, or remove the tag")


def _too_long(body: Section, value: str, at: Path) -> Iterator[Mistake]:
    """Yield a wait that leaves no time to train: SageMaker counts it as run time."""
    try:
        wait = read_hold_open(value).longest
    except BadOptionError:
        return
    seconds = whole_number(section(body, "StoppingCondition") or {}, "MaxRuntimeInSeconds")
    runtime = DEFAULT_RUNTIME if seconds is None else timedelta(seconds=seconds)
    if wait >= runtime:
        longest = runtime // timedelta(seconds=1)
        message = f"of {HOLD_OPEN} is not less than MaxRuntimeInSeconds, {longest}, within which it counts"
        yield Mistake(at, message, "wait for less time, or raise StoppingCondition.MaxRuntimeInSeconds")
