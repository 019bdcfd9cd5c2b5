"""Which trainings the proof runs, and what it records of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from training.metrics import Event, event_in
from training.options.choices import Precision
from training.proof.jobs import Attempt
from training.proof.kill_schedule import Kill, Schedule

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: str
    precision: Precision
    schedule: Schedule
    reference: str | None = None
    """The run that nobody interrupted, of the same precision; None: this is it."""
    spoils: bool = False
    """The newest checkpoint is spoiled before each attempt that has another one to go back to."""


def runs_of(
    schedule: Schedule,
    precisions: Sequence[Precision] = (Precision.FP32, Precision.BF16),
    *,
    in_saves: Sequence[Kill] = (),
    spoils: bool = False,
) -> list[Run]:
    """As given in fp32; with the same kills on the first world throughout in each precision.

    And in the first of them killed ``in_saves``, and with checkpoints spoiled between the attempts.
    """
    found = [run for one in precisions for run in _of_precision(one, schedule)]
    first = precisions[0]
    reference = f"{first}-uninterrupted"
    if in_saves:
        world = schedule.worlds[0]
        caught = replace(schedule, kills=tuple(in_saves), worlds=(world,) * (len(in_saves) + 1))
        found.append(
            Run(id=f"{first}-killed-in-saves", precision=first, schedule=caught, reference=reference)
        )
    if spoils and schedule.kills:
        one_world = schedule.in_one_world()
        found.append(
            Run(id=f"{first}-spoiled", precision=first, schedule=one_world, reference=reference, spoils=True)
        )
    return found


def _of_precision(precision: Precision, schedule: Schedule) -> list[Run]:
    plain, interrupted = f"{precision}-uninterrupted", f"{precision}-interrupted"
    one_world = Run(
        id=f"{interrupted}-one-world", precision=precision, schedule=schedule.in_one_world(), reference=plain
    )
    reference = Run(id=plain, precision=precision, schedule=schedule.uninterrupted())
    if precision is not Precision.FP32:  # sums of bf16 differ too much between numbers of ranks
        return [reference, one_world]
    as_given = Run(id=interrupted, precision=precision, schedule=schedule, reference=plain)
    return [reference, as_given] if schedule.is_of_one_world else [reference, as_given, one_world]


def facts_of(run: Run, attempts: Sequence[Attempt], hashes: dict[str, str] | None) -> Facts:
    """What happened; ``losses`` are in the order in which the steps were trained, replays included."""
    losses = [loss for attempt in attempts for loss in attempt.losses]
    return {
        "id": run.id,
        "precision": str(run.precision),
        "reference": run.reference,
        "spoils": run.spoils,
        "worlds": list(run.schedule.worlds),
        "signals": [str(kill) for kill in run.schedule.kills],
        "exit_codes": [attempt.exit_code for attempt in attempts],
        "steps_replayed": len(losses) - len(Counter(step for step, _ in losses)),
        "final_hashes": hashes,
        "attempts": [_attempt_facts(attempt) for attempt in attempts],
        "losses": [[step, loss.hex()] for step, loss in losses],
    }


def _attempt_facts(attempt: Attempt) -> Facts:
    steps = [step for step, _ in attempt.losses]
    return {
        "world": attempt.world,
        "signal": str(attempt.kill) if attempt.kill else None,
        "sent_at": attempt.sent_at,
        "spoiled": attempt.spoiled,
        "exit_code": attempt.exit_code,
        "first_step": steps[0] if steps else None,
        "last_step": steps[-1] if steps else None,
        "steps_trained": len(steps),
        "seconds": round(attempt.seconds, 1),
        "resume_seconds": _resume_seconds(attempt),
        "said": list(attempt.said),
        "error": attempt.error,
    }


def _resume_seconds(attempt: Attempt) -> dict[str, float] | None:
    """By phase, as the program said; None: it began from nothing, or told none."""
    events = [found for line in attempt.said if (found := event_in(line)) and found["kind"] == Event.RESUME]
    if not events:
        return None
    phases = {name.removesuffix("_s"): value for name, value in events[0].items() if name.endswith("_s")}
    return {name: value for name, value in phases.items() if isinstance(value, float)}
