"""Which hyperparameters a trial gets. Always the same of the same study: the seed is the study's."""

import importlib.util
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

from trainmaster_client.errors import FieldProblem, UnsupportedTuningError
from trainmaster_client.errors.missing_packages import install_command
from trainmaster_client.tuning.search_space import Choice, NumberRange, Parameters
from trainmaster_client.tuning.study import Study
from trainmaster_client.tuning.tuning_requests import Strategy, TuningPlan


def proposed(plan: TuningPlan, study: Study, number: int) -> Parameters:
    """Of the trial with this number, the first being 1."""
    match plan.strategy:
        case Strategy.RANDOM:
            return _random(plan, number)
        case Strategy.GRID:
            return next(islice(plan.space.combinations(), number - 1, None))
        case Strategy.BAYESIAN:
            return _bayesian(plan, study, number)


def check_installed(plan: TuningPlan) -> None:
    """Raises UnsupportedTuningError where the strategy needs a package that is not there."""
    if plan.strategy is Strategy.BAYESIAN and importlib.util.find_spec("optuna") is None:
        problem = FieldProblem(
            field="HyperParameterTuningJobConfig.Strategy",
            message="Bayesian needs the package optuna, which is not installed",
            hint=f"run: {install_command('tune')}, or use Random or Grid",
        )
        raise UnsupportedTuningError((problem,))


def _random(plan: TuningPlan, number: int) -> Parameters:
    drawn = random.Random(f"{plan.seed}/{number}")  # noqa: S311  no secret: the seed makes it repeatable
    return {
        one.name: drawn.choice(one.values) if isinstance(one, Choice) else one.at(drawn.random())
        for one in plan.space.ranges
    }


def _bayesian(plan: TuningPlan, study: Study, number: int) -> Parameters:
    """By Optuna's tree-structured Parzen estimator, fed with all that is known, running trials too."""
    import optuna  # noqa: PLC0415  an extra, and half a second

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # else it tells of each study that it makes
    try:
        sampler = optuna.samplers.TPESampler(seed=plan.seed + number, constant_liar=True)
        direction = "maximize" if plan.objective.is_maximized else "minimize"
        asked = optuna.create_study(direction=direction, sampler=sampler)
    finally:
        optuna.logging.set_verbosity(verbosity)
    distributions = {one.name: _distribution(optuna, one) for one in plan.space.ranges}
    for values, state, value in _known(plan, study):
        asked.add_trial(
            optuna.trial.create_trial(
                params=values, distributions=distributions, state=optuna.trial.TrialState[state], value=value
            )
        )
    found = asked.ask(distributions).params
    return {
        one.name: one.at(found[one.name]) if isinstance(one, NumberRange) else found[one.name]
        for one in plan.space.ranges
    }


def _distribution(optuna: Any, one: Choice | NumberRange) -> Any:  # noqa: ANN401  of an extra
    if isinstance(one, Choice):
        return optuna.distributions.CategoricalDistribution(one.values)
    return optuna.distributions.FloatDistribution(0.0, 1.0)


def _known(plan: TuningPlan, study: Study) -> Iterator[tuple[dict[str, Any], str, float | None]]:
    """On the scale of each range, and how each trial ended in Optuna's words."""
    for other in study.inherited:
        yield _scaled(plan, other.parameters), "COMPLETE", other.value
    for one in study.trials:
        ended = "FAIL" if one.seen.value is None else "COMPLETE"
        yield _scaled(plan, one.parameters), "RUNNING" if one.is_live else ended, one.seen.value


def _scaled(plan: TuningPlan, parameters: Parameters) -> dict[str, Any]:
    return {
        one.name: one.position(parameters[one.name]) if isinstance(one, NumberRange) else parameters[one.name]
        for one in plan.space.ranges
    }
