"""How a line gives itself out: chatter, well, a warning, or louder."""

import pytest
from trainmaster.core.diagnosis.diagnosis import is_noise, is_told, is_warning


@pytest.mark.parametrize(
    "line",
    [
        "W dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: cannot open",
        "E cuda_driver.cc:266] failed call to cuInit: no CUDA-capable device is detected",
        "algo-1:48:48 [0] NCCL INFO NET/OFI Request completed with error",
        "2024 sagemaker-training-toolkit INFO     No Neurons detected (normal if no neurons installed)",
    ],
)
def test_chatter_names_failures_that_are_none(line: str) -> None:
    assert is_noise(line)


@pytest.mark.parametrize(
    "line",
    [
        "2024-01-01 10:00:00,123 - trainer - WARNING - Connection reset by peer, again in 5 s",
        "WARNING:urllib3.connectionpool:Retrying after connection broken by 'ConnectTimeoutError'",
        "[W socket.cpp:601] [c10d] The client socket has failed to connect to [algo-1]:7777",
        "[rank0]:[W501 21:01:27.110829382 ProcessGroupNCCL.cpp:4561] using GPU 0 to perform barrier",
        "/opt/conda/lib/x.py:3: UserWarning: disk is full soon",
        "warning: no space left on device, using memory",
    ],
)
def test_a_warning_is_known_by_its_level(line: str) -> None:
    assert is_warning(line)
    assert not is_told(line)


@pytest.mark.parametrize(
    "line",
    [
        "INFO:absl:tensorflow_text is not available: No module named 'tensorflow_text'",
        "2024-01-01 10:00:00,123 DEBUG retry after TimeoutError",
        "I0213 12:07:20.086000 870572 torch/distributed/elastic/agent/server/api.py:889] Worker group FAILED",
    ],
)
def test_what_is_well_is_known_by_its_level(line: str) -> None:
    assert is_told(line)
    assert not is_warning(line)


@pytest.mark.parametrize(
    "line",
    [
        "algo-2:1:2 [3] include/socket.h 398 NCCL WARN Call to recv failed : Connection reset by peer.",
        "10.3.35.83: WARN: Function: find_ofi_provider Line: 543: NET/OFI Couldn't find any optimal provider",
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "  (5) INTERNAL:  NCCL: unhandled system error. Set NCCL_DEBUG=WARN for detail.",
        "[E socket.cpp:860] [c10d] The client socket has timed out after 60s",
        "ERROR: Unexpected bus error encountered in worker.",
        f"ValueError: {'x' * 200} INFO and WARNING are names of levels",
    ],
)
def test_louder_lines_stay_what_they_are(line: str) -> None:
    assert not is_warning(line)
    assert not is_told(line)
    assert not is_noise(line)
