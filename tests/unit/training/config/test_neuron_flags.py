import pytest

from training.config.neuron_flags import compiler_flags
from training.errors import ConfigError


@pytest.mark.parametrize(
    ("own", "given"),
    [
        pytest.param("", "--model-type=transformer", id="none"),
        pytest.param("-O1", "--model-type=transformer -O1", id="a level"),
        pytest.param("--model-type generic", "--model-type generic", id="a model type of its own"),
        pytest.param(
            "--auto-cast=all --auto-cast-type fp8_e4m3 --verbose info",
            "--model-type=transformer --auto-cast=all --auto-cast-type fp8_e4m3 --verbose info",
            id="one that the reference's table has not",
        ),
    ],
)
def test_a_job_s_flags_are_kept_and_lack_no_model_type(own: str, given: str) -> None:
    assert compiler_flags(own) == (given, [])


@pytest.mark.parametrize(
    ("own", "said"),
    [
        pytest.param(
            "--model-type=llama", "--model-type must be one of generic, transformer, ", id="a model"
        ),
        pytest.param(
            "--auto-cast matmul", "--auto-cast must be one of none, matmult, all, not 'matmul'", id="cast"
        ),
        pytest.param("-O4", "-O must be one of 1, 2, 3, not '4'", id="a level"),
        pytest.param("--optlevel", "--optlevel must be one of 1, 2, 3, not ''", id="no value"),
        pytest.param("--optlevel '1", "cannot be read: No closing quotation", id="half a quote"),
    ],
)
def test_a_value_that_the_compiler_refuses_is_refused_before_it_runs(own: str, said: str) -> None:
    with pytest.raises(ConfigError, match="NEURON_CC_FLAGS") as caught:
        compiler_flags(own)
    assert said in str(caught.value)


def test_all_wrong_values_are_one_refusal() -> None:
    with pytest.raises(ConfigError) as caught:
        compiler_flags("-O9 --auto-cast=some")
    assert len(caught.value.problems) == 2


def test_a_flag_that_looks_misspelt_passes_with_a_question() -> None:
    flags, notes = compiler_flags("--model-type=transformer --opt-level=1")
    assert flags.endswith("--opt-level=1")
    assert notes == ["NEURON_CC_FLAGS: --opt-level is passed on as it is; did you mean --optlevel?"]
