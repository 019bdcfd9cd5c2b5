"""Signatures of failures outside the program: the service, capacity, hardware, the network."""

from trainmaster.core.diagnosis.signature import Certainty, signature
from trainmaster.core.jobs.failures import FailureClass

_API = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html"
_STATUS = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_SecondaryStatusTransition.html"
_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"
_XID = "https://docs.nvidia.com/deploy/xid-errors/"
_CUDA = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
_NVSENTINEL = "https://github.com/NVIDIA/NVSentinel/issues/155"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
_NCCL_TYPES = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html"
_TORCH = "https://docs.pytorch.org/docs/stable/distributed.html"
_NEURON = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-troubleshoot.html"
_MPI = "https://github.com/horovod/horovod/issues/1950"
_XLA = "https://github.com/jax-ml/jax/issues/19307"
_OFI = "https://github.com/aws/aws-ofi-nccl/issues"
_TENSORFLOW = "https://github.com/tensorflow/tensorflow/issues/51760"

_SERVICE, _CAPACITY = FailureClass.SERVICE, FailureClass.CAPACITY
_HARDWARE, _NETWORK = FailureClass.HARDWARE, FailureClass.NETWORK

SERVICE = (
    signature(
        _SERVICE,
        Certainty.CODE,
        r"^\W{0,9}(?:Internal ?(?:Server|Service)? ?(?:Error|Failure|Exception)\b"
        r"|(?:ServiceUnavailable|Throttling)(?:Error|Failure|Exception)?:"
        r"|(?:we encountered )?an internal error\b)",
        _API,
    ),
    signature(
        _SERVICE,
        Certainty.SIGNAL,
        r"an error occurred \((?:5\d\d|[\w.]{0,40}(?:Internal(?:Server|Service)?(?:Error|Failure|Exception)"
        r"|SlowDown|Throttl|Unavailable|RequestLimitExceeded|TooManyRequests|RequestTimeout)[\w.]{0,40})\)"
        r" when calling",
        _EC2,
        "An AWS service refused for the moment: run it again, with more retries in the program's client.",
    ),
)

CAPACITY = (
    signature(
        _CAPACITY,
        Certainty.CODE,
        r"^\W{0,9}(?:CapacityError|(?:EC2)?Insufficient(?:Instance)?Capacity(?:Error)?|ResourceLimitExceeded"
        r"|MaxWaitTimeExceeded)\b",
        _API,
    ),
    signature(
        _CAPACITY,
        Certainty.SIGNAL,
        r"unable to provision requested ML compute capacity|\b(?:EC2)?Insufficient\w{0,20}Capacity"
        r"|insufficient (?:spot|instance|EC2|compute|ML) capacity|insufficient capacity error"
        r"|do(?:es)? not have sufficient \S{1,40} capacity"
        r"|no (?:spot )?capacity (?:is )?available|capacity-not-available|account-level service limit"
        r"|spot capacity (?:is |was )?(?:not available|unavailable)"
        r"|spot interruption notice (?:was )?received"
        r"|spot instance (?:was |has been )?(?:interrupt|reclaim|terminat)",
        _STATUS,
    ),
)

HARDWARE = (
    signature(
        _HARDWARE,
        Certainty.CAUSE,
        r"(?:uncorrect(?:able|ed)|unrecoverable|double[- ]bit|contained|fatal) (?:\w{1,20} ){0,2}?"
        r"(?:ECC|NVLink|NVSwitch|HBM|SRAM|DRAM|PCIe)\b|ECC_?UNCORRECTABLE|over nvlink or a hardware error"
        r"|hardware stack error|cudaErrorHardwareStackError|GPU requires (?:a )?reset|\bSXid\b",
        _CUDA,
    ),
    signature(
        _HARDWARE,
        Certainty.CAUSE,
        r"fallen off the bus|GPU is lost|RmInitAdapter failed|GSP timeout|RPC response from GPU"
        r"|(?:PCIe Bus Error: severity|AER: )=?Uncorrect|row remapping failure",
        _NVSENTINEL,
    ),
    signature(_HARDWARE, Certainty.CAUSE, r"NVRM: .{0,80}(?:cannot attach gpu|failed to (?:en)?able)", _XID),
    # Those that NVIDIA's catalogue blames on memory, links or the board, not on the program.
    signature(
        _HARDWARE,
        Certainty.CAUSE,
        r"(?:\bXid\b.{0,60}?[:)]|previous Xid|\bXid) {0,4}"
        r"(?:48|6[234]|74|79|92|9[45]|11[09]|120|13[68]|140|14[3-9]|15[0-9])\b",
        _XID,
    ),
    signature(
        _HARDWARE,
        Certainty.CAUSE,
        r"no CUDA-capable device is detected|unable to determine the device handle for GPU"
        r"|couldn't communicate with the NVIDIA driver|(?:error|802:|')[: ]{0,2}system not yet initialized"
        r"|device\(s\) is/are busy or unavailable|CUDA unknown error"
        r"|CUDA (?:error: |failure \d{0,4} {0,2}')unknown error"
        r"|failed to initialize NVML: (?:unknown|GPU)",
        _CUDA,
    ),
    signature(
        _HARDWARE,
        Certainty.CAUSE,
        r"launched instance was unhealthy"
        r"|(?:GPU|DCGM|instance|node) (?:\w{1,20} ){0,3}health check (?:has )?fail",
        _STATUS,
    ),
    signature(_HARDWARE, Certainty.CAUSE, r"NRT_(?:EXEC_)?HW_ERR|uncorrectable (?:SRAM|HBM) error", _NEURON),
    signature(
        _HARDWARE,
        Certainty.CAUSE,
        r"\[Hardware Error\]: ",
        "https://www.kernel.org/doc/html/latest/admin-guide/ras.html",
    ),
)

# The words of our own launcher (training/monitoring/watchdog.py), which name any function: so it comes
# first. Every process was alive, but an exception that one of them has logged before may be the cause.
HANG = (
    signature(
        _NETWORK,
        Certainty.SIGNAL,
        r"hang: no rank has finished a step for \d",
        _TORCH,
        "The ranks hung inside a step: the line names where each was, and the log has all stacks. If it"
        " repeats at one place, look there first: a rank that skips a collective operation hangs the others.",
    ),
)

# Hosts of one training job have these names. What else cannot be reached is outside.
OTHER_HOSTS = (
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"\balgo-\d{1,4}\b.{0,160}"
        r"(?:name resolution|name or service not known|unreachable|refused|timed out|no route to host"
        r"|could not resolve|connection closed|lost)"
        r"|(?:could not resolve|failed to connect|unable to connect|no route to host).{0,80}\balgo-\d",
        _NCCL,
    ),
)

NETWORK = (
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"collective (?:operation )?timeout|NCCL watchdog thread terminated|watchdog got stuck"
        r"|\bNCCL timeout\b|some NCCL operations have failed or timed out"
        r"|NCCL communicator was aborted|HeartbeatMonitor",
        _TORCH,
        "A rank did not join a collective operation in time: look for one that is late, hangs or has died.",
    ),
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"nccl(?:System|Remote|Internal)Error|unhandled system error|\bncclSuccess\b.{0,300}\bsystem error"
        r"|remote process exited or there was a network error",
        _NCCL_TYPES,
    ),
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"NCCL WARN NET/(?:OFI|IB) .{0,300}(?:error|fail|RC: -?\d|status=|only EFA provider)"
        r"|\bNET/(?:OFI|IB)\b.{0,300}(?:couldn't|could not|unable|no eligible|fail|completed with error)"
        r"|libfabric.{0,200}(?:error|fail)|aws-ofi-nccl initialization failed|fi_getinfo\(\) call failed",
        _OFI,
        "The network between the hosts (EFA) failed: check that the image has EFA and aws-ofi-nccl for this"
        " instance type and that the security group allows all traffic within itself; then run it again.",
    ),
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"(?:NCCL|CCOM) WARN .{0,200}(?:connection|broken pipe|no route to host|socket|timeout|timed out"
        r"|network|bootstrap|call to (?:recv|send|read|write|connect))",
        _NCCL,
    ),
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"Rendezvous(?:Connection|Timeout|Closed)Error|client socket has (?:timed out|failed)"
        r"|connection to the C10d store has failed|Dist(?:Network|Store|Backend)Error"
        r"|c10d.{0,200}timed out"
        r"|TCPStore.{0,100}(?:fail|timed? ?out)|store based barrier"
        r"|timed out initializing process group|wait timeout after|c10d.{0,200}cannot be retrieved"
        r"|connect\(\) timed out|timed out waiting \d{1,9} ?ms for (?:recv|send)|gloo/transport"
        r"|\bgloo\b.{0,100}(?:fail|timed? ?out|closed)|monitoredBarrier.{0,200}(?:fail|error|timed? ?out)",
        _TORCH,
    ),
    # The words of our own program (training/errors.py, MissingRanksError and LostRanksError).
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"\brank.{0,200} did not join within [\d.]{1,12} s\b|joined and does not answer any more"
        r"|the ranks cannot reach each other",
        _TORCH,
    ),
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"Horovod has been shut down|ORTE (?:has lost communication|was unable to reliably start|daemon)"
        r"|peer process has unexpectedly disconnected|HorovodInternalError|HostsUpdatedInterrupt"
        r"|lost (?:connection|communication) (?:to|with)|smddp.{0,100}(?:timeout|timed out|abort|nccl)"
        r"|CommClosedError",
        _MPI,
    ),
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"DEADLINE_EXCEEDED|barrier timed out|\bUNAVAILABLE: |StatusCode\.UNAVAILABLE|\bUnavailableError\b"
        r"|failed to connect to all addresses|collective ops is aborted|heartbeat timeout"
        r"|coordination (?:service|agent).{0,200}(?:error|unavailable|heartbeat)"
        r"|NCCL operation .{0,200}failed: (?:remote|unhandled system)|async NCCL error",
        _XLA,
    ),
    signature(_NETWORK, Certainty.CONSEQUENCE, r"NRT_TIMEOUT|nrt_\w{1,40}.{0,100}timed? ?out", _NEURON),
    signature(_NETWORK, Certainty.CONSEQUENCE, r"\bNCCL: .{0,100}(?:error|abort)", _TENSORFLOW),
    signature(
        _NETWORK,
        Certainty.CONSEQUENCE,
        r"Connection(?:Reset|Refused|Aborted)Error|BrokenPipeError|\[Errno 1(?:04|07|1[0-3])\]"
        r"|(?:RuntimeError|socket\.error|OSError)\b.{0,100}"
        r"(?:connection (?:reset|closed|refused)|broken pipe|socket timeout)"
        r"|connection (?:reset|closed) by (?:remote )?peer|transport endpoint is not connected",
        _TORCH,
    ),
)

# NCCL's word for a CUDA call that failed: after 2 hours of work seldom the program's fault.
UNHANDLED_CUDA = (
    signature(
        _HARDWARE,
        Certainty.CONSEQUENCE,
        r"ncclUnhandledCudaError|unhandled cuda error",
        _NCCL_TYPES,
        "A CUDA call of NCCL failed: run it again with NCCL_DEBUG=INFO; if it fails at once, the image and"
        " the driver do not fit each other.",
    ),
)
