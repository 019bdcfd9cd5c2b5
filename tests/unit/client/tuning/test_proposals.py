"""Which parameters trials get, by strategy."""

from dataclasses import replace
from importlib import util

import pytest
from trainmaster_client.errors import UnsupportedTuningError
from trainmaster_client.tuning.proposals import check_installed, proposed
from trainmaster_client.tuning.study import Outcome, Seen, Study, Trial, TrialStatus
from trainmaster_client.tuning.tuning_requests import TuningPlan, trial_name

from tests.builders import NOON
from tests.unit.client.tuning.requests import choices, numbers, request

BOWL = numbers(x=("0", "1", "Linear")) | choices(kind=["a", "b"])


def study(plan: TuningPlan, *known: tuple[float, str]) -> tuple[TuningPlan, Study]:
    trials = tuple(
        Trial(
            number=number,
            name=trial_name(plan.name, number),
            parameters={"x": repr(x), "kind": kind},
            proposed_at=NOON,
            seen=Seen(status=TrialStatus.COMPLETED, ended_at=NOON, value=(x - 0.3) ** 2 + (kind == "b")),
        )
        for number, (x, kind) in enumerate(known, start=1)
    )
    return plan, Study(request={}, created_at=NOON, modified_at=NOON, trials=trials)


@pytest.mark.parametrize("strategy", ["Random", "Bayesian"])
def test_the_same_study_gets_the_same_proposal_and_another_number_or_seed_another(strategy: str) -> None:
    plan, found = study(TuningPlan.parse(request(strategy=strategy, ParameterRanges=BOWL)), (0.1, "a"))
    one = proposed(plan, found, 2)
    assert proposed(plan, found, 2) == one
    assert proposed(plan, found, 3) != one
    assert proposed(replace(plan, seed=plan.seed + 7), found, 2) != one
    assert 0 <= float(one["x"]) <= 1
    assert one["kind"] in {"a", "b"}


def test_a_grid_gets_each_combination_once() -> None:
    plan = TuningPlan.parse(request(strategy="Grid", ParameterRanges=choices(a=["1", "2"], b=["x", "y"])))
    plan, found = study(plan)
    everything = [tuple(proposed(plan, found, number).values()) for number in range(1, 5)]
    assert len(set(everything)) == 4


def test_a_bayesian_study_looks_where_it_was_good() -> None:
    """Of twenty proposals after twenty known trials more lie near the best than chance would put there."""
    known = [(index / 20, "ab"[index % 2]) for index in range(20)]
    plan, found = study(TuningPlan.parse(request(strategy="Bayesian", ParameterRanges=BOWL)), *known)
    proposals = [proposed(plan, found, number) for number in range(21, 41)]
    near = [one for one in proposals if abs(float(one["x"]) - 0.3) < 0.2]
    assert len(near) >= 13, proposals  # by chance 8 of 20
    assert sum(one["kind"] == "a" for one in proposals) >= 13, proposals


def test_a_bayesian_study_knows_what_its_parents_found_and_which_trials_run() -> None:
    plan, found = study(TuningPlan.parse(request(strategy="Bayesian", ParameterRanges=BOWL)))
    outcomes = tuple(
        Outcome(parameters={"x": repr(index / 20), "kind": "a"}, value=(index / 20 - 0.8) ** 2)
        for index in range(20)
    )
    warm = replace(found, inherited=outcomes)
    proposals = [float(proposed(plan, warm, number)["x"]) for number in range(1, 11)]
    assert sum(abs(x - 0.8) < 0.2 for x in proposals) >= 6, proposals
    running = tuple(
        Trial(number=number, name="one", parameters={"x": "0.8", "kind": "a"}, proposed_at=NOON)
        for number in range(1, 9)
    )
    beside = replace(warm, trials=running)
    others = [float(proposed(plan, beside, number)["x"]) for number in range(1, 11)]
    assert sum(abs(x - 0.8) for x in others) > sum(abs(x - 0.8) for x in proposals)


def test_without_optuna_a_bayesian_study_is_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = TuningPlan.parse(request(strategy="Bayesian"))
    check_installed(plan)
    monkeypatch.setattr(util, "find_spec", lambda _: None)
    with pytest.raises(UnsupportedTuningError, match="run: pip install 'optuna"):
        check_installed(plan)
    check_installed(TuningPlan.parse(request(strategy="Random")))
