"""Signatures of running out of something: GPU memory, host memory, disk."""

from trainmaster.core.diagnosis.signature import Certainty, signature
from trainmaster.core.jobs.failures import FailureClass

_TORCH_MEMORY = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"
_CUBLAS = "https://github.com/deepspeedai/DeepSpeedExamples/issues/323"
_NCCL = "https://github.com/NVIDIA/nccl/issues/1235"
_RAPIDS = "https://github.com/rapidsai/deployment/issues/523"
_TENSORFLOW = "https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth"
_XLA = "https://docs.jax.dev/en/latest/gpu_memory_allocation.html"
_SAGEMAKER = (
    "https://github.com/comic/grand-challenge.org/blob/12850c5f0654e5629c59c56a7198ef7431094754"
    "/app/grandchallenge/components/backends/amazon_sagemaker_base.py"
)
_LOADER = "https://github.com/pytorch/pytorch/issues/8976"
_SHM = "https://github.com/aws/sagemaker-python-sdk/issues/5592"
_PYTHON = "https://docs.python.org/3/library/exceptions.html#MemoryError"
_ERRNO = "https://docs.python.org/3/library/errno.html"
_KERNEL = "https://docs.kernel.org/admin-guide/mm/concepts.html#oom-killer"
_ELASTIC = "https://docs.pytorch.org/docs/stable/elastic/errors.html"
_NRT = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-troubleshoot.html"
_RAY = "https://docs.ray.io/en/latest/ray-core/scheduling/ray-oom-prevention.html"
_NEURON = "https://github.com/aws-neuron/aws-neuron-sdk/issues/426"
_DISK = "https://github.com/aws/sagemaker-python-sdk/issues/128"

_GPU, _HOST, _FULL = FailureClass.GPU_OOM, FailureClass.HOST_OOM, FailureClass.DISK_FULL
_SHARED = (
    "Data loader workers ran out of shared memory: use fewer workers or smaller batches, or an instance type"
    " with more memory; /dev/shm grows with it."
)
KILLED = (
    "A process was killed, presumably by the kernel because memory ran out: use an instance type with more."
)

GPU_OOM = (
    signature(_HOST, Certainty.CAUSE, r"OOM when allocating tensor.{0,200}device:CPU", _TENSORFLOW),
    signature(
        _GPU,
        Certainty.CAUSE,
        r"CUDA out of memory|CUDA error: out of memory|torch\.(?:cuda\.)?OutOfMemoryError|HIP out of memory"
        r"|failed to allocate the scratch space"
        r"|\b(?:CUDA\w{0,20}|GPU|cuDNN|cuBLAS|device|HBM)\b.{0,60}\bout of memory\b(?!: kill)"
        r"|error out of memory at line \d|memory allocation error on worker"
        r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|cudaMalloc failed: out of memory",
        _TORCH_MEMORY,
    ),
    signature(_GPU, Certainty.CAUSE, r"CU(?:BLAS|DNN)_STATUS_ALLOC_FAILED", _CUBLAS),
    signature(
        _GPU, Certainty.CAUSE, r"cuda failure '?out of memory|cuda failure 2\b|failed to CUDA \w?alloc", _NCCL
    ),
    signature(_GPU, Certainty.CAUSE, r"bad_alloc: out_of_memory: CUDA|rmm.{0,100}out_of_memory", _RAPIDS),
    signature(
        _GPU,
        Certainty.CAUSE,
        r"OOM when allocating tensor|ran out of memory trying to allocate"
        r"|ResourceExhaustedError\b.{0,200}(?:OOM|memory|alloc)",
        _TENSORFLOW,
    ),
    signature(
        _GPU,
        Certainty.CAUSE,
        r"RESOURCE_EXHAUSTED: (?:out of memory|.{0,60}(?:allocat|reserve|memory|OOM))"
        r"|Xla.{0,40}RESOURCE_EXHAUSTED",
        _XLA,
    ),
    signature(
        _GPU,
        Certainty.CAUSE,
        r"NRT_RESOURCE|nrt_\w{1,40} status=4\b|nrt_\w{1,40}.{0,100}allocation failure",
        _NRT,
    ),
)

HOST_OOM = (
    signature(
        _HOST,
        Certainty.CAUSE,
        r"use an instance type with more memory|out of memory\. please use a larger instance",
        _SAGEMAKER,
    ),
    signature(_HOST, Certainty.CAUSE, r"DataLoader worker.{0,60}killed by signal: Killed", _LOADER),
    signature(
        _HOST,
        Certainty.CAUSE,
        r"DataLoader worker.{0,60}killed by signal: Bus error|insufficient shared memory \(shm\)"
        r"|out of shared memory|unable to (?:open|allocate|mmap) shared memory|No space left.{0,40}/dev/shm"
        r"|unable to write to file </torch_",
        _SHM,
        _SHARED,
    ),
    signature(
        _HOST,
        Certainty.CAUSE,
        r"(?:^|[\s.\"'])(?:_Array)?MemoryError\b|unable to allocate [\d.]{1,12} ?(?:[KMGT]i?B|bytes)",
        _PYTHON,
    ),
    signature(
        _HOST,
        Certainty.CAUSE,
        r"cannot allocate memory|DefaultCPUAllocator: .{0,60}memory|std::bad_alloc|\bbad allocation\b"
        r"|java heap space|GC overhead limit|java\.lang\.OutOfMemoryError|\[Errno 12\]",
        _ERRNO,
    ),
    signature(
        _HOST,
        Certainty.CAUSE,
        r"oom[-_ ]?kill|out of memory: kill(?:ed)? process|oom_reaper|memory cgroup out of memory"
        r"|exceed\w{0,3} (?:\w{1,12} ){0,2}memory limit|memory limit (?:was )?exceeded",
        _KERNEL,
        KILLED,
    ),
    signature(_HOST, Certainty.CAUSE, r"system out of memory", _NEURON),
    signature(
        _HOST, Certainty.CAUSE, r"ray\.exceptions\.OutOfMemoryError|running low on memory", _RAY, KILLED
    ),
    signature(
        _HOST,
        Certainty.SIGNAL,
        r"(?:exit|return) ?code {0,4}[:=]? {0,4}-9\b|signal:? 9\b|\bSIGKILL\b"
        r"|(?-i:(?:^|\s)Killed(?:\s{2,9}|\s{0,9}$))",
        _ELASTIC,
        KILLED,
    ),
    signature(
        _HOST,
        Certainty.SIGNAL,
        r"(?:exit|return) ?code {0,4}[:=]? {0,4}-7\b|signal:? 7\b|\bSIGBUS\b|(?-i:^Bus error)",
        _SHM,
        _SHARED,
    ),
    signature(
        _HOST,
        Certainty.CONSEQUENCE,
        r"DataLoader worker.{0,80}exited unexpectedly",
        _LOADER,
    ),
    signature(_HOST, Certainty.SIGNAL, r"\bout of memory\b|\bran out of (?:host )?(?:memory|RAM)\b", _KERNEL),
)

# TensorFlow has one exception for all that can run out; that of a disk names a file.
FILES = (signature(_FULL, Certainty.CAUSE, r"Resource_?Exhausted(?:Error)?: \S{0,200}/\S", _TENSORFLOW),)

DISK_FULL = (
    signature(
        _FULL,
        Certainty.CAUSE,
        r"no space left on device|\[Errno 28\]|\[Error 28\]|\bENOSPC\b|disk quota exceeded|\[Errno 122\]",
        _ERRNO,
    ),
    signature(
        _FULL,
        Certainty.CAUSE,
        r"insufficient disk space|not enough (?:free )?(?:disk )?space|disk (?:is )?full|ran out of disk"
        r"|\bunexpected pos \d{1,20} vs|PytorchStreamWriter failed writing",
        _DISK,
    ),
)
