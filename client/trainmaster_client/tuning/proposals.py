"""Choose the hyperparameters of a trial: always the same for the same study, as the seed is part of it."""

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
    """Return the hyperparameters of the trial with this number, the first trial being 1.

    A grid has no combination after its last one: StopIteration is raised for such a number.
    """
    match plan.strategy:
        case Strategy.RANDOM:
            return _random(plan, number)
        case Strategy.GRID:
            return next(islice(plan.space.combinations(), number - 1, None))
        case Strategy.BAYESIAN:
            return _bayesian(plan, study, number)


def check_installed(plan: TuningPlan) -> None:
    """Raises UnsupportedTuningError where the strategy needs a package that is not installed."""
    if plan.strategy is Strategy.BAYESIAN and importlib.util.find_spec("optuna") is None:
        problem = FieldProblem(
            field="HyperParameterTuningJobConfig.Strategy",
            message="Bayesian needs the package optuna, which is not installed",
            hint=f"run: {install_command('tune')}, or use Random or Grid",
        )
        raise UnsupportedTuningError((problem,))


def _random(plan: TuningPlan, number: int) -> Parameters:
    rng = random.Random(f"{plan.seed}/{number}")  # noqa: S311  no secret: the seed makes it repeatable
    return {
        axis.name: rng.choice(axis.values) if isinstance(axis, Choice) else axis.at(rng.random())
        for axis in plan.space.ranges
    }


def _bayesian(plan: TuningPlan, study: Study, number: int) -> Parameters:
    """Ask Optuna's tree-structured Parzen estimator, fed with all that is known, running trials too."""
    import optuna  # noqa: PLC0415  an extra, and half a second

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # else it tells of each study that it makes
    try:
        sampler = optuna.samplers.TPESampler(seed=plan.seed + number, constant_liar=True)
        direction = "maximize" if plan.objective.is_maximized else "minimize"
        optuna_study = optuna.create_study(direction=direction, sampler=sampler)
    finally:
        optuna.logging.set_verbosity(verbosity)
    distributions = {axis.name: _distribution(optuna, axis) for axis in plan.space.ranges}
    for values, state, value in _known(plan, study):
        optuna_study.add_trial(
            optuna.trial.create_trial(
                params=values, distributions=distributions, state=optuna.trial.TrialState[state], value=value
            )
        )
    suggested = optuna_study.ask(distributions).params
    return {
        axis.name: axis.at(suggested[axis.name]) if isinstance(axis, NumberRange) else suggested[axis.name]
        for axis in plan.space.ranges
    }


def _distribution(optuna: Any, axis: Choice | NumberRange) -> Any:  # noqa: ANN401  of an extra
    if isinstance(axis, Choice):
        return optuna.distributions.CategoricalDistribution(axis.values)
    return optuna.distributions.FloatDistribution(0.0, 1.0)


def _known(plan: TuningPlan, study: Study) -> Iterator[tuple[dict[str, Any], str, float | None]]:
    """Yield each known trial: its values on the scale of each range, Optuna's state for it, its objective."""
    for outcome in study.inherited:
        yield _scaled(plan, outcome.parameters), "COMPLETE", outcome.value
    for trial in study.trials:
        ended = "FAIL" if trial.seen.value is None else "COMPLETE"
        yield _scaled(plan, trial.parameters), "RUNNING" if trial.is_live else ended, trial.seen.value


def _scaled(plan: TuningPlan, parameters: Parameters) -> dict[str, Any]:
    return {
        axis.name: axis.position(parameters[axis.name])
        if isinstance(axis, NumberRange)
        else parameters[axis.name]
        for axis in plan.space.ranges
    }
