"""Which trainings the proof runs, and what it records of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from training.choices import Precision
from training.proof.attempts import Attempt
from training.proof.schedule import Schedule

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: str
    precision: Precision
    schedule: Schedule
    reference: str | None = None
    """The run that nobody interrupted, of the same precision; None: this is it."""


def runs_of(schedule: Schedule) -> list[Run]:
    """As given in fp32; with the same kills on the first world throughout in fp32 and in bf16."""
    plain, interrupted, one_world = "uninterrupted", "interrupted", "interrupted-one-world"
    found = [
        Run(id=f"fp32-{plain}", precision=Precision.FP32, schedule=schedule.uninterrupted()),
        Run(
            id=f"fp32-{interrupted}",
            precision=Precision.FP32,
            schedule=schedule,
            reference=f"fp32-{plain}",
        ),
    ]
    if not schedule.is_of_one_world:
        found.append(
            Run(
                id=f"fp32-{one_world}",
                precision=Precision.FP32,
                schedule=schedule.in_one_world(),
                reference=f"fp32-{plain}",
            )
        )
    return [
        *found,
        Run(id=f"bf16-{plain}", precision=Precision.BF16, schedule=schedule.uninterrupted()),
        Run(
            id=f"bf16-{one_world}",
            precision=Precision.BF16,
            schedule=schedule.in_one_world(),
            reference=f"bf16-{plain}",
        ),
    ]


def facts_of(run: Run, attempts: Sequence[Attempt], hashes: dict[str, str] | None) -> Facts:
    """What happened; ``losses`` are in the order in which the steps were trained, replays included."""
    losses = [loss for attempt in attempts for loss in attempt.losses]
    return {
        "id": run.id,
        "precision": str(run.precision),
        "reference": run.reference,
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
        "exit_code": attempt.exit_code,
        "first_step": steps[0] if steps else None,
        "last_step": steps[-1] if steps else None,
        "steps_trained": len(steps),
        "seconds": round(attempt.seconds, 1),
        "said": list(attempt.said),
        "error": attempt.error,
    }
