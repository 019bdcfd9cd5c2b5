from training.choices import DebugLevel
from training.debugging import debug_variables


def test_off_sets_nothing() -> None:
    assert debug_variables(DebugLevel.OFF, {}) == {}


def test_the_flight_recorder_lands_in_the_jobs_output() -> None:
    found = debug_variables(DebugLevel.INFO, {"SM_OUTPUT_DATA_DIR": "/out"})
    assert found["TORCH_DISTRIBUTED_DEBUG"] == "INFO"
    assert found["TORCH_SHOW_CPP_STACKTRACES"] == "1"
    assert (
        found["TORCH_FR_DUMP_TEMP_FILE"]
        == found["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
        == "/out/flight-recorder-"
    )
    assert debug_variables(DebugLevel.INFO, {})["TORCH_FR_DUMP_TEMP_FILE"].startswith("/opt/ml/output/data/")


def test_what_the_job_sets_itself_is_left_alone() -> None:
    found = debug_variables(DebugLevel.DETAIL, {"TORCH_CPP_LOG_LEVEL": "WARNING"})
    assert found["TORCH_DISTRIBUTED_DEBUG"] == "DETAIL"
    assert "TORCH_CPP_LOG_LEVEL" not in found
