"""What the owner of a failed job can do, by class."""

from collections.abc import Mapping

from trainmaster.core.jobs.failures import FailureClass

ADVICE: Mapping[FailureClass, str] = {
    FailureClass.SERVICE: "SageMaker failed, not the job: run it again; if it repeats, ask AWS Support.",
    FailureClass.CAPACITY: "AWS had no such instances: wait, or name shapes in trainmaster:alternatives.",
    FailureClass.HARDWARE: "A GPU or host is broken: run it again, it will get other instances.",
    FailureClass.NETWORK: (
        "The hosts lost each other: run it again; if it repeats, look for a rank that is late or has died,"
        " and check that the security group allows all traffic within itself."
    ),
    FailureClass.GPU_OOM: (
        "The GPU ran out of memory: use a smaller batch with more gradient accumulation, activation"
        " checkpointing or sharding, or a GPU with more memory."
    ),
    FailureClass.HOST_OOM: (
        "The host ran out of memory: use fewer or leaner data loader workers, load data in parts, or take an"
        " instance type with more memory."
    ),
    FailureClass.DISK_FULL: (
        "A disk is full: raise VolumeSizeInGB, stream the input (FastFile) or keep fewer checkpoints."
    ),
    FailureClass.DATA_ACCESS: (
        "Data could not be read or written: check the URI, the role's S3 and KMS permissions, and the way"
        " from the subnets to S3."
    ),
    FailureClass.IMAGE: (
        "The image does not start: check its URI, the role's ECR permissions, its entry point, and that it"
        " fits the instance's processor and driver."
    ),
    FailureClass.USER_CODE: "The program failed: mend it; it would fail again.",
    FailureClass.UNKNOWN: "Nothing known was found in the failure reason and the log: read the log.",
}
