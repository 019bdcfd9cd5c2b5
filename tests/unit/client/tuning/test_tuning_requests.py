"""What a tuning job's request means to the queue, what is refused, and what its trials ask for."""

from typing import Any

import pytest
from trainmaster_client.errors import UnsupportedTuningError
from trainmaster_client.tuning.tuning_requests import TuningPlan, trial_name, trial_request, tuning_job_of

from tests.unit.client.tuning.requests import choices, numbers, request

LIMITS = {"MaxNumberOfTrainingJobs": 4, "MaxParallelTrainingJobs": 2}


@pytest.mark.parametrize(
    ("asked", "field", "remedy"),
    [
        pytest.param(request(strategy="Hyperband"), "Strategy Hyperband", "use Random", id="Hyperband"),
        pytest.param(
            request(TrainingJobEarlyStoppingType="Auto"), "EarlyStoppingType", "use Off", id="early stopping"
        ),
        pytest.param(
            request(ResourceLimits={**LIMITS, "MaxRuntimeInSeconds": 600}),
            "ResourceLimits.MaxRuntimeInSeconds",
            "StoppingCondition",
            id="a time for all trials",
        ),
        pytest.param(
            request(
                TuningJobCompletionCriteria={"ConvergenceDetected": {"CompleteOnConvergence": "Enabled"}}
            ),
            "ConvergenceDetected",
            "BestObjectiveNotImproving",
            id="convergence",
        ),
        pytest.param(request() | {"Autotune": {"Mode": "Enabled"}}, "Autotune", "give ranges", id="Autotune"),
        pytest.param(
            request() | {"TrainingJobDefinitions": [{}, {}]},
            "TrainingJobDefinitions",
            "one algorithm",
            id="two",
        ),
        pytest.param(
            request(ParameterRanges={"AutoParameters": [{"Name": "x", "ValueHint": "1"}]}),
            "ParameterRanges.AutoParameters",
            "give ranges",
            id="ranges by itself",
        ),
        pytest.param(
            request(HyperParameterTuningJobObjective=None), "Objective, left out", "metric", id="no metric"
        ),
        pytest.param(
            request(strategy="Grid"), "Strategy: Grid takes", "as a category", id="a grid of numbers"
        ),
        pytest.param(
            request(ResourceLimits={"MaxParallelTrainingJobs": 2}),
            "MaxNumberOfTrainingJobs: is missing",
            "give a number",
            id="endless",
        ),
        pytest.param(
            request(ParameterRanges=numbers(x=("2", "1", "Linear"))),
            "ContinuousParameterRanges[0]",
            "x:",
            id="x",
        ),
    ],
)
def test_what_the_queue_cannot_do_is_refused_by_its_field_and_with_what_to_do(
    asked: dict[str, Any], field: str, remedy: str
) -> None:
    with pytest.raises(UnsupportedTuningError, match="nothing was started") as refused:
        TuningPlan.parse(asked)
    assert field in str(refused.value)
    assert remedy in str(refused.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(UnsupportedTuningError) as refused:
        TuningPlan.parse(request(strategy="Hyperband", TrainingJobEarlyStoppingType="Auto"))
    assert len(refused.value.problems) == 2


@pytest.mark.parametrize(("limits", "most"), [({}, 6), ({"MaxNumberOfTrainingJobs": 4}, 4)])
def test_a_grid_has_as_many_trials_as_combinations_or_fewer(limits: dict[str, int], most: int) -> None:
    ranges = choices(kind=["a", "b"], depth=["1", "2", "3"])
    asked = request(
        strategy="Grid", ParameterRanges=ranges, ResourceLimits={"MaxParallelTrainingJobs": 1, **limits}
    )
    assert TuningPlan.parse(asked).most_trials == most


def test_names_of_trials_are_as_sagemakers_and_lead_back_to_their_tuning_job() -> None:
    name = trial_name("tune-2", 7)
    assert name.startswith("tune-2-007-")
    assert len(name) == len("tune-2-007-") + 8
    assert tuning_job_of(name) == "tune-2"
    assert len({trial_name("a" * 32, number) for number in range(1, 1001)}) == 1000
    assert max(len(trial_name("a" * 32, number)) for number in (1, 99999)) <= 63


@pytest.mark.parametrize("name", ["tune-2-007-00000000", "tune", "a-b", "a-007-", "-007-x", "a-x-b"])
def test_names_of_other_jobs_are_no_trials(name: str) -> None:
    assert tuning_job_of(name) is None


def test_a_trial_asks_for_what_the_definition_has_with_its_own_parameters_checkpoints_and_the_tags() -> None:
    asked = request()
    asked["TrainingJobDefinition"] |= {
        "DefinitionName": "one",
        "CheckpointConfig": {"S3Uri": "s3://bucket/kept/", "LocalPath": "/opt/ml/checkpoints"},
    }
    found, name = trial_request(asked, 2, {"rate": "0.1"}), trial_name("tune", 2)
    assert found["TrainingJobName"] == name
    assert found["HyperParameters"] == {"steps": "3", "rate": "0.1", "_tuning_objective_metric": "loss"}
    assert found["CheckpointConfig"]["S3Uri"] == f"s3://bucket/kept/{name}"
    assert found["Tags"] == asked["Tags"]
    assert not {"StaticHyperParameters", "DefinitionName"} & set(found)
    same = ("AlgorithmSpecification", "RoleArn", "OutputDataConfig", "ResourceConfig", "StoppingCondition")
    assert all(found[field] == asked["TrainingJobDefinition"][field] for field in same)


def test_instances_as_the_sdk_names_them_are_those_of_a_training_job() -> None:
    asked = request()
    instances = asked["TrainingJobDefinition"].pop("ResourceConfig")
    asked["TrainingJobDefinition"]["HyperParameterTuningResourceConfig"] = instances
    assert trial_request(asked, 1, {})["ResourceConfig"] == instances
    several = [{**instances, "VolumeSizeInGB": 30}]
    one = {"VolumeSizeInGB": 5, "InstanceConfigs": several}
    asked["TrainingJobDefinition"]["HyperParameterTuningResourceConfig"] = one
    assert trial_request(asked, 1, {})["ResourceConfig"] == {**instances, "VolumeSizeInGB": 30}
    several.append(several[0])
    with pytest.raises(UnsupportedTuningError, match="one type of instance"):
        TuningPlan.parse(asked)
