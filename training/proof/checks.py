"""What must hold of the runs, computed from their facts alone."""

from itertools import pairwise, takewhile
from math import inf
from typing import Any

from trainmaster_client.report import Report

from training.proof.kill_schedule import KILLED, allowed_exits

TOLERANCE = 1e-7
"""Largest difference of a loss (nats per token, fp32) once the number of ranks has changed: the order in
which sums are rounded is another one then."""
TOLERANCE_OF_IMAGES = 1e-6
"""The loss of a step is the mean over as many predictions as images, not over thousands of tokens: what their
rounding leaves (a loss of 7 in fp32 is known to 5e-7) hardly evens out."""
_NONE: dict[str, Any] = {"sent_at": None, "last_step": None}

Facts = dict[str, Any]
Loss = tuple[int, float]


def check(report: Report) -> None:
    """Hold every run to the schedule, and to the run that nobody interrupted."""
    facts = report.facts
    runs: dict[str, Facts] = {run["id"]: run for run in facts["runs"]}
    if facts.get("spoilings"):
        _check_trials(report, facts["spoilings"])
    for run in runs.values():
        _check_course(report, run, steps=facts["steps"])
        if run["reference"] is not None:
            if run["spoils"]:
                _check_spoiled(report, run)
            else:
                _check_replays(report, run, most=2 * facts["checkpoint_every"])
            _check_losses(report, run, runs[run["reference"]], tolerance=facts["tolerance"])
        if run["reference"] is not None and len(set(run["worlds"])) == 1:
            _check_hashes(report, run, runs[run["reference"]])


def _check_trials(report: Report, trials: list[Facts]) -> None:
    missed = [trial["what"] for trial in trials if not trial["found"]]
    report.check(
        "spoiled-shards-found",
        expected=f"{len(trials)} of {len(trials)}",
        actual=f"{len(trials) - len(missed)} of {len(trials)}" + "".join(f"; missed {one}" for one in missed),
        ok=not missed,
    )


def _check_spoiled(report: Report, run: Facts) -> None:
    """Each attempt that found a spoiled checkpoint has named it, and resumed from one before."""
    spoiled = [one for one in run["attempts"] if one["spoiled"]]
    names = [one["spoiled"].partition(":")[0] for one in spoiled]
    passed_over = [
        name
        for name, one in zip(names, spoiled, strict=True)
        if any(line.startswith(f"skipping torn checkpoint {name}: ") for line in one["said"])
        and one["first_step"] is not None
        and one["first_step"] <= int(name.removeprefix("step-"))
    ]
    report.check(
        f"{run['id']}-passed-over",
        expected=names,
        actual=passed_over,
        ok=bool(names) and names == passed_over,
    )


def _check_hashes(report: Report, run: Facts, reference: Facts) -> None:
    """Weights and optimizer end byte for byte as they do without a kill."""
    found, wanted = run["final_hashes"], reference["final_hashes"]
    report.check(
        f"{run['id']}-final-hashes",
        expected=wanted,
        actual=found,
        ok=found is not None and found == wanted,
    )


def _check_course(report: Report, run: Facts, *, steps: int) -> None:
    """It was killed as the schedule says, and trained every step."""
    allowed = _allowed_exits(run, steps)
    report.check(
        f"{run['id']}-exit-codes",
        expected=[codes[0] for codes in allowed],
        actual=run["exit_codes"],
        ok=len(allowed) == len(run["exit_codes"])
        and all(code in codes for code, codes in zip(run["exit_codes"], allowed, strict=True)),
    )
    trained = {step for step, _ in run["losses"]}
    missing = sorted(set(range(1, steps + 1)) - trained)
    report.check(f"{run['id']}-steps-missing", expected=[], actual=missing)


def _allowed_exits(run: Facts, steps: int) -> list[list[int]]:
    """For each world there was to be an attempt in."""
    allowed: list[list[int]] = []
    done = 0
    for number, kill in enumerate([*run["signals"], None]):
        attempt = run["attempts"][number] if number < len(run["attempts"]) else _NONE
        allowed.append(allowed_exits(kill, sent_at=attempt["sent_at"], done=done, steps=steps))
        done = max(done, attempt["last_step"] or 0)
    return allowed


def _check_replays(report: Report, run: Facts, *, most: int) -> None:
    """A stop that was announced costs no step; one that was not costs what no checkpoint held."""
    lost = {"announced": 0, "unannounced": 0}
    for before, after in pairwise(run["attempts"]):
        if before["last_step"] is not None and after["first_step"] is not None:
            kind = "unannounced" if before["exit_code"] == KILLED else "announced"
            lost[kind] = max(lost[kind], before["last_step"] + 1 - after["first_step"])
    report.check(f"{run['id']}-steps-lost-when-asked", expected=0, actual=lost["announced"])
    if any(one.endswith(("KILL", "SAVE")) for one in run["signals"]):
        report.check(
            f"{run['id']}-steps-lost-when-killed",
            expected=f"at most {most}, two intervals of checkpoints",
            actual=lost["unannounced"],
            ok=lost["unannounced"] <= most,
        )


def _check_losses(report: Report, run: Facts, reference: Facts, *, tolerance: float) -> None:
    """To the last bit while the number of ranks was that of the reference, within rounding from then on."""
    wanted = {step: float.fromhex(loss) for step, loss in reference["losses"]}
    same, other = _divided(run, reference["worlds"][0])
    differing = [step for step, loss in same if loss != wanted.get(step)]
    report.check(
        f"{run['id']}-same-bits",
        expected="every loss equal to the last bit",
        actual=f"{len(same)} losses" + (f", steps {differing[:5]} differ" if differing else ", all equal"),
        ok=bool(same) and not differing,
    )
    if other:
        apart = [abs(loss - wanted.get(step, inf)) for step, loss in other]
        report.check(
            f"{run['id']}-close",
            expected=f"every loss within {tolerance} once the number of ranks has changed",
            actual=f"{len(other)} losses, largest difference {max(apart):.1e}",
            ok=all(one <= tolerance for one in apart),  # nan is not
        )


def _divided(run: Facts, world: int) -> tuple[list[Loss], list[Loss]]:
    """The losses before and after the number of ranks changed for the first time."""
    unchanged = takewhile(lambda attempt: attempt["world"] == world, run["attempts"])
    same = sum(attempt["steps_trained"] for attempt in unchanged)
    losses = [(step, float.fromhex(loss)) for step, loss in run["losses"]]
    return losses[:same], losses[same:]
