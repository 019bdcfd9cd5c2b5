"""Why a training job failed: the cause before what follows from it, and evidence that may be shown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.diagnosis import FailureEvidence, diagnose
from trainmaster.core.diagnosis.diagnosis import ADVICE, SIGNATURES
from trainmaster.core.diagnosis.evidence import readable
from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.policy.governance import Recovery

OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.70 GiB."
TIMEOUT = (
    "[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog caught collective operation timeout:"
    " WorkNCCL(SeqNum=469508, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1802212 milliseconds"
)
RESET = "worker0:15:91 [3] include/socket.h 398 NCCL WARN Call to recv failed : Connection reset by peer."
ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
FRAME = '  File "train.py", line 3, in main'
RETRIED = Recovery().retry_classes
SCRIPT = "AlgorithmError: ExecuteUserScriptError: ExitCode 1 ErrorMessage"


def class_of(reason: str | None = None, *log: str, exit_code: int | None = None) -> FailureClass:
    traces = FailureEvidence(failure_reason=reason, exit_code=exit_code, log_tail=log)
    return diagnose(traces).failure_class


@pytest.mark.parametrize(
    ("reason", "log", "found"),
    [
        pytest.param(SCRIPT, (OOM, TIMEOUT, RESET), "gpu-oom", id="memory, then the others time out"),
        pytest.param(SCRIPT, (RESET, TIMEOUT, OOM), "gpu-oom", id="the others' clocks may be ahead"),
        pytest.param(SCRIPT, (TIMEOUT, ECC), "hardware", id="a broken GPU, and who waits for it"),
        pytest.param(
            SCRIPT, ("KeyError: 'label'", TIMEOUT, RESET), "user-code", id="a bug on one rank is a bug"
        ),
        pytest.param(SCRIPT, (RESET, TIMEOUT), "network", id="nothing but the network"),
        pytest.param(
            f'{SCRIPT} "RuntimeError: NCCL error: unhandled system error',
            (OOM,),
            "gpu-oom",
            id="SageMaker quotes a rank that lost another",
        ),
        pytest.param(
            SCRIPT, ("ValueError: bad", OOM), "gpu-oom", id="an exception may have been handled, memory not"
        ),
        pytest.param("AlgorithmError: , exit code: 137", (TIMEOUT,), "host-oom", id="killed, then missed"),
        pytest.param("AlgorithmError: , exit code: 139", (RESET,), "user-code", id="crashed, then missed"),
        pytest.param("AlgorithmError: , exit code: 134", (TIMEOUT,), "network", id="NCCL's watchdog aborts"),
        pytest.param("AlgorithmError: , exit code: 1", (TIMEOUT,), "network", id="1 says nothing"),
        pytest.param(
            "InternalServerError: We encountered an internal error. Please try again.",
            ("KeyError: 'x'", OOM),
            "service",
            id="SageMaker's own word goes first",
        ),
        pytest.param(
            "CapacityError: Unable to provision requested ML compute capacity.",
            ("ValueError: x",),
            "capacity",
            id="as for capacity",
        ),
        pytest.param(
            f'{SCRIPT} "InternalServerError: the endpoint of the program',
            (),
            "user-code",
            id="but not inside the program's words",
        ),
        pytest.param(
            None, ("InternalServerError: We encountered an internal error",), "user-code", id="nor in its log"
        ),
        pytest.param(
            "ClientError: Data download failed:Insufficient disk space",
            (),
            "disk-full",
            id="of two on a line the more particular",
        ),
        pytest.param(
            "UnexpectedStatusException: Error for Training job x-1: Failed. Reason: InternalServerError: We",
            (),
            "service",
            id="as the SDK passes SageMaker's word on",
        ),
        pytest.param(
            f'{SCRIPT} "\nInternalError: Blas GEMM launch failed', (), "user-code",
            id="on a later line it is the program's word",
        ),
        pytest.param(SCRIPT, (FRAME, "Unsupported: no graph", TIMEOUT), "user-code", id="a bug of any name"),
        pytest.param(
            SCRIPT, (f"2024 - WARNING - {OOM} Halving the batch", "KeyError: 'a'"), "user-code",
            id="memory that ran out and was found again",
        ),
        pytest.param(
            SCRIPT, (f"2024 - WARNING - {OOM}",), "gpu-oom", id="a warning where nothing else is said"
        ),
        pytest.param(SCRIPT, (f"WARNING:root:{ECC}", "KeyError: 1"), "hardware", id="a broken GPU is one"),
        pytest.param(SCRIPT, ("[INFO] retry after ConnectionResetError: reset",), "user-code", id="nor info"),
        pytest.param(
            SCRIPT,
            ("E cuda_driver.cc:266] failed call to cuInit: no CUDA-capable device is detected",),
            "user-code",
            id="TensorFlow where there is no GPU",
        ),
        pytest.param(
            SCRIPT, ("FileNotFoundError: [Errno 2] No such file or directory: '/opt/ml/input/data/train/a'",),
            "data-access", id="a file of a channel",
        ),
        pytest.param(
            SCRIPT, ("FileNotFoundError: [Errno 2] No such file or directory: 'config.yaml'",),
            "user-code", id="a file of the program",
        ),
        pytest.param(
            SCRIPT, ("botocore.exceptions.ClientError: An error occurred (Throttling) when calling X: no",),
            "service", id="an AWS service that refused",
        ),
        pytest.param(
            SCRIPT, ("An error occurred (SlowDown) when calling PutObject, again", "KeyError: 'a'"),
            "user-code", id="and then let through",
        ),
        pytest.param(
            SCRIPT, ("botocore.exceptions.ClientError: An error occurred (ValidationException) when",),
            "user-code", id="an AWS service that was asked badly",
        ),
        pytest.param(
            None, ("ResourceExhaustedError: ./model/model-49.tempstate5787",), "disk-full",
            id="what ran out was room for a file",
        ),
        pytest.param("AlgorithmError: , exit code: 143", (), "unknown", id="told to stop"),
        pytest.param("AlgorithmError: , exit code: 143", (TIMEOUT,), "network", id="told to stop, and why"),
        pytest.param("ClientError: something new", (), "user-code", id="SageMaker blames its customer"),
        pytest.param("SomethingElse: new", (), "unknown", id="a reason nobody knows"),
        pytest.param(None, (), "unknown", id="no traces at all"),
        pytest.param("", ("", "   "), "unknown", id="empty ones"),
        pytest.param(
            None,
            ("ran out of memory trying to allocate 0B. The caller indicates that this is not a failure",),
            "unknown",
            id="a warning that says it is none",
        ),
        pytest.param(
            None,
            ("algo-1:48:48 [0] NCCL INFO NCCL_DEBUG set; Connection closed by remote peer",),
            "unknown",
            id="NCCL's chatter",
        ),
    ],
)  # fmt: skip
def test_the_first_cause_counts(reason: str | None, log: tuple[str, ...], found: str) -> None:
    assert class_of(reason, *log) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (1, "user-code"), (2, "user-code"), (255, "user-code"), (134, "user-code"), (139, "user-code"),
        (137, "host-oom"), (135, "host-oom"), (126, "image"), (127, "image"), (132, "image"),
        (-9, "host-oom"), (-11, "user-code"), (0, "unknown"), (247, "host-oom"), (245, "user-code"),
        (143, "unknown"), (-15, "unknown"), (241, "unknown"),
    ],
)  # fmt: skip
def test_an_exit_code_alone_says_something(code: int, found: str) -> None:
    assert class_of(None, exit_code=code) == found


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("AlgorithmError: , exit code: 1", 1),
        ("AlgorithmError: Exit Code: 139", 139),
        ("AlgorithmError: ExecuteUserScriptError: ExitCode 137", 137),
        ("AlgorithmError: exit code: -9", -9),
        ("CapacityError: none", None),
        ("AlgorithmError: exit code: 12345", None),
        (None, None),
    ],
)
def test_the_exit_code_is_read_from_the_failure_reason(reason: str | None, code: int | None) -> None:
    assert diagnose(FailureEvidence(failure_reason=reason)).exit_code == code


@pytest.mark.parametrize(
    "line",
    [
        "WARNING:urllib3:Retrying after ConnectionResetError: [Errno 104] Connection reset by peer",
        "[W socket.cpp:601] [c10d] The client socket has failed to connect to [algo-1]:7777 (refused).",
        "2024-01-01 WARNING An error occurred (SlowDown) when calling the PutObject operation",
        "2024-01-01 WARNING spot instance was reclaimed an hour ago",
        "INFO:c10d:Watchdog caught collective operation timeout, restarted",
        "the model has insufficient capacity for this task",
        "GPU memory health check passed",
        "fatal out of memory error",
        "the environment's system is not yet ready",
        "distributed system not yet initialized",
    ],
)  # fmt: skip
def test_what_may_have_passed_or_only_sounds_like_it_makes_no_job_come_back(line: str) -> None:
    assert class_of("AlgorithmError: , exit code: 1", line) not in RETRIED
    assert class_of(None, line) not in RETRIED


def test_an_exit_code_that_is_known_goes_before_the_text() -> None:
    assert (
        diagnose(FailureEvidence(failure_reason="AlgorithmError: , exit code: 1", exit_code=137)).exit_code
        == 137
    )


def test_a_diagnosis_has_advice_and_the_line_that_gave_it_away() -> None:
    found = diagnose(FailureEvidence(failure_reason=SCRIPT, log_tail=("epoch 1", OOM, TIMEOUT)))
    assert found.evidence == OOM
    assert found.advice.startswith("The GPU ran out of memory: use a smaller batch")
    assert found.exit_code == 1


def test_a_line_that_says_more_has_advice_of_its_own() -> None:
    line = "RuntimeError: DataLoader worker (pid 256) is killed by signal: Bus error."
    found = diagnose(FailureEvidence(log_tail=(line,)))
    assert found.failure_class == "host-oom"
    assert found.advice.startswith("Data loader workers ran out of shared memory")


def test_evidence_is_printable_and_cut() -> None:
    line = f"\x1b[31m{'x' * 500}\x00\u202e\ud800 {OOM} {'y' * 500}\n"
    evidence = diagnose(FailureEvidence(log_tail=(line,))).evidence
    assert evidence is not None
    assert evidence.isprintable()
    assert len(evidence) <= 200
    assert "CUDA out of memory" in evidence


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7CANARY00",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "HF_TOKEN=canary-0123456789",
        "'password': 'canary9'",
        "Authorization: Bearer canary.canary",
        "hf_canarycanarycanarycanarycanary0",
        "https://user:canary@example.com/x",
    ],
)
@pytest.mark.parametrize("before", [0, 150, 195, 5000])
def test_evidence_never_repeats_a_secret(secret: str, before: int) -> None:
    for line in (f"{'.' * before}{secret} {OOM}", f"KeyError: {'.' * before} {secret}", f"{OOM} {secret}"):
        evidence = diagnose(FailureEvidence(log_tail=(line,))).evidence
        assert evidence is not None
        assert not re.search(r"canary|wJalr|K7MDENG", evidence, re.IGNORECASE), line[-300:]


def test_of_a_long_line_its_head_and_tail_are_looked_at() -> None:
    text = readable(f"head {'x' * 10_000_000} tail")
    assert (text[:8], text[-8:], len(text)) == ("head xxx", "xxx tail", 2005)


def test_a_line_of_ten_megabytes_is_looked_at_from_both_ends() -> None:
    huge = "ab(" * 3_500_000
    assert class_of(None, f"{OOM}{huge}") == "gpu-oom"
    assert class_of(None, f"{huge}{OOM}") == "gpu-oom"
    assert class_of(None, *[huge] * 3) == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        '  File "' * 500,
        "a.b." * 900,
        "a" * 4000,
        "(" * 4000,
        "NCCL WARN " * 400,
        "error: argument " * 250,
        " Aa" * 1300,
    ],
)
def test_lines_made_to_keep_patterns_busy_are_read_in_time(text: str) -> None:
    """Without the bounds of the patterns this test does not come to an end."""
    assert class_of(text, *(f"{number} {text}" for number in range(20))) in FailureClass


@given(
    reason=st.none() | st.text(), log=st.lists(st.text(), max_size=5), code=st.none() | st.integers(-300, 300)
)
def test_no_traces_make_it_fail(reason: str | None, log: list[str], code: int | None) -> None:
    found = diagnose(FailureEvidence(failure_reason=reason, exit_code=code, log_tail=tuple(log)))
    assert found.advice
    assert found.evidence is None or (found.evidence.isprintable() and len(found.evidence) <= 200)


def test_every_repetition_in_a_pattern_is_bounded() -> None:
    """So no line, whoever wrote it, makes a pattern slow."""
    for one in SIGNATURES:
        outside_of_classes = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "", one.pattern.pattern)
        assert not re.search(r"[*+]", outside_of_classes), one.pattern.pattern
        assert not re.search(r"\{\d+,\}", outside_of_classes), one.pattern.pattern


def test_every_class_has_advice_and_every_signature_a_source() -> None:
    assert set(ADVICE) == set(FailureClass)
    assert all(one.source.startswith("https://") for one in SIGNATURES)
    assert {one.failure_class for one in SIGNATURES} == set(FailureClass)
