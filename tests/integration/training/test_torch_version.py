"""A torch that does not do, seen by the program as its package says it, under the real launcher."""

from pathlib import Path

from trainmaster.core.diagnosis import FailureEvidence, diagnose
from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.policy.governance import Recovery

from tests.integration.training.launches import Ended, Host


def _run(folder: Path, *, torch: str, **options: str) -> tuple[Host, Ended]:
    """Two ranks on a host whose torch calls itself so; nothing of it can be imported."""
    packages = folder / "packages"
    (packages / f"torch-{torch}.dist-info").mkdir(parents=True)
    (packages / f"torch-{torch}.dist-info/METADATA").write_text(f"Name: torch\nVersion: {torch}\n")
    (packages / "torch.py").write_text("raise ImportError('the program has loaded torch')")
    host = Host.with_program(folder / "ml", NPROC_PER_NODE="2", PYTHONPATH=str(packages))
    host.tell("hyperparameters", {"steps": "3", **options})
    return host, host.run()


def _is_the_users_and_not_retried(host: Host) -> bool:
    wrapped = f"AlgorithmError: {host.failure}, exit code: 1"
    found = diagnose(FailureEvidence(failure_reason=wrapped)).failure_class
    return found is FailureClass.USER_CODE and found not in Recovery().retry_classes


def test_M8_a_torch_below_the_floor_is_refused_before_it_is_loaded_and_before_ranks_meet(
    tmp_path: Path,
) -> None:
    host, refused = _run(tmp_path, torch="2.8.0")
    assert refused.code == 1
    assert host.failure == (
        "torch 2.8.0 is installed, and the program needs 2.9 or newer: "
        "choose another image, see docs/training/README.md#versions-of-pytorch"
    )
    assert "Traceback" not in refused.errors
    assert host.status["state"] == "failed"
    assert _is_the_users_and_not_retried(host)


def test_M8_an_option_that_this_torch_lacks_is_refused_likewise(tmp_path: Path) -> None:
    host, refused = _run(tmp_path, torch="2.9.1", strategy="no_shard")
    assert refused.code == 1
    assert host.failure.startswith("strategy no_shard needs torch 2.11 or newer, and 2.9.1 is installed;")
    assert "Traceback" not in refused.errors
    assert _is_the_users_and_not_retried(host)
