"""Facts of a proof as a run of it leaves them: eight steps, killed once."""

from typing import Any

from benchmarks.training.proof.evidence import TOLERANCE

Facts = dict[str, Any]

REFERENCE = {step: 5.5 - step / 8 for step in range(1, 9)}
HASHES = {"params": "aa" * 32, "optimizer": "bb" * 32}


def attempt(world: int, steps: range, *, signal: str | None, exit_code: int) -> Facts:
    return {
        "world": world,
        "signal": signal,
        "sent_at": steps[-1] if signal else None,
        "spoiled": None,
        "exit_code": exit_code,
        "first_step": steps[0],
        "last_step": steps[-1],
        "steps_trained": len(steps),
        "seconds": 1.0,
        "said": [],
        "error": "",
    }


def uninterrupted() -> Facts:
    return {
        "id": "fp32-uninterrupted",
        "precision": "fp32",
        "reference": None,
        "spoils": False,
        "worlds": [2],
        "signals": [],
        "exit_codes": [0],
        "steps_replayed": 0,
        "final_hashes": dict(HASHES),
        "attempts": [attempt(2, range(1, 9), signal=None, exit_code=0)],
        "losses": [[step, loss.hex()] for step, loss in REFERENCE.items()],
    }


def interrupted(*, worlds: tuple[int, int] = (2, 2), signal: str = "5:TERM", resumed: int = 5) -> Facts:
    """It trained steps 1 to 5, and went on after step ``resumed``."""
    code = -9 if signal.endswith("KILL") else 143
    attempts = [
        attempt(worlds[0], range(1, 6), signal=signal, exit_code=code),
        attempt(worlds[1], range(resumed + 1, 9), signal=None, exit_code=0),
    ]
    trained = [*range(1, 6), *range(resumed + 1, 9)]
    return {
        **uninterrupted(),
        "id": "fp32-interrupted",
        "reference": "fp32-uninterrupted",
        "worlds": list(worlds),
        "signals": [signal],
        "exit_codes": [code, 0],
        "steps_replayed": 5 - resumed,
        "attempts": attempts,
        "losses": [[step, REFERENCE[step].hex()] for step in trained],
    }


def facts(*runs: Facts) -> Facts:
    return {"seed": 0, "steps": 8, "checkpoint_every": 2, "tolerance": TOLERANCE, "runs": list(runs)}
