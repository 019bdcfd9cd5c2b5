"""Signatures of the program's own failures, which are matched after those that have other causes as well."""

from trainmaster.core.diagnosis.signature import Certainty, signature
from trainmaster.core.jobs.failures import FailureClass

_ARGPARSE = "https://docs.python.org/3/library/argparse.html#exiting-methods"
_TOOLKIT = "https://github.com/aws/sagemaker-training-toolkit/issues/19"
_CUDA = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
_XID = "https://docs.nvidia.com/deploy/xid-errors/"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html"
_NAN = "https://github.com/facebookresearch/detectron2/issues/214"
_GPU_ONLY = "https://github.com/aws/amazon-sagemaker-examples/issues/587"
_PARSE = "https://github.com/aws/amazon-sagemaker-examples/issues/1017"
_MPI = "https://github.com/horovod/horovod/issues/1421"
_LOADER = "https://github.com/MhLiao/DB/issues/94"
_ELASTIC = "https://docs.pytorch.org/docs/stable/elastic/multiprocessing.html"
_CLIENT = "https://docs.aws.amazon.com/boto3/latest/guide/error-handling.html"
_SHELL = "https://www.gnu.org/software/bash/manual/html_node/Exit-Status.html"
_PYTHON = "https://docs.python.org/3/library/exceptions.html"
_SIGNALS = "https://man7.org/linux/man-pages/man7/signal.7.html"
_SAGEMAKER = "https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingJob.html"

_USER = FailureClass.USER_CODE
_NATIVE = (
    "Native code crashed: look for a library that does not fit the others, or a bug in an own extension."
)

STOPPED = (
    "The program was asked to stop (SIGTERM): look who stopped the job, or which of its hosts went first."
)

PARTICULAR = (
    signature(
        _USER,
        Certainty.EXCEPTION,
        r"error: (?:unrecognized arguments|the following arguments are required|argument \S{1,60}:)",
        _ARGPARSE,
        "The program does not know a hyperparameter, or misses one: compare them with its arguments.",
    ),
    signature(
        _USER,
        Certainty.EXCEPTION,
        r"InstallModuleError|InstallRequirementsError|no matching distribution found|ResolutionImpossible"
        r"|No module named|pip install .{0,120}returned non-zero",
        _TOOLKIT,
        "A package is missing or cannot be installed: put it into requirements.txt or the image.",
    ),
    signature(
        _USER,
        Certainty.EXCEPTION,
        r"device-side assert|assertion `.{1,200}` failed|illegal memory access|misaligned address"
        r"|CUDA error: (?:invalid|unspecified launch failure|an illegal)"
        r"|cuda runtime error \((?:59|77|710)\)",
        _CUDA,
        "A kernel got wrong indices: check labels and indices, and run with CUDA_LAUNCH_BLOCKING=1.",
    ),
    signature(_USER, Certainty.EXCEPTION, r"\bXid\b.{0,60}?[:)] {0,4}(?:13|31|43|45)\b", _XID),
    signature(
        _USER,
        Certainty.EXCEPTION,
        r"loss (?:is|was|became) (?:\w{1,20} or )?(?:nan|inf)|FloatingPointError|(?:nan|inf) loss",
        _NAN,
        "The loss became NaN or infinite: lower the learning rate, clip gradients, check the data.",
    ),
    signature(
        _USER,
        Certainty.EXCEPTION,
        r"ncclInvalid(?:Usage|Argument)|NCCL.{0,300}invalid usage|duplicate GPU detected"
        r"|SMDDP does not support"
        r"|invalid device ordinal",
        _NCCL,
        "Ranks and GPUs do not match: each rank needs a GPU of its own.",
    ),
    signature(_USER, Certainty.EXCEPTION, r"please use a GPU instance", _GPU_ONLY),
    signature(
        _USER,
        Certainty.EXCEPTION,
        r"\bunable to parse\b|error when parsing|error tokenizing data|customer error: "
        r"|exception during training",
        _PARSE,
        "The input data is not what the algorithm reads: check its format and content type.",
    ),
    signature(
        _USER,
        Certainty.SIGNAL,
        r"segmentation fault|\bSIGSEGV\b|signal:? 11\b|(?:exit|return) ?code {0,4}[:=]? {0,4}-11\b",
        _LOADER,
        _NATIVE,
    ),
)

GENERAL = (
    signature(
        FailureClass.UNKNOWN,
        Certainty.HINT,
        r"SignalException: Process \d{1,9} got signal: 15|signal:? 15\b"
        r"|(?:exit|return) ?code {0,4}[:=]? {0,4}-15\b",
        _ELASTIC,
        STOPPED,
    ),
    # An exception that is known as nothing else. Those left out only pass on what happened elsewhere.
    signature(
        _USER,
        Certainty.EXCEPTION,
        r"(?-i:(?:^|[\s.\"':\]>])[A-Z]\w{1,60}(?<!UserScript)(?<!Algorithm)(?<!Client)(?<!ChildFailed)"
        r"(?<!CalledProcess)(?<!ProcessRaised)(?<!ProcessExited)"
        r"(?:Error|Exception|Interrupt|Iteration)(?:: |\(|\s{0,9}$))",
        _PYTHON,
    ),
    signature(_USER, Certainty.EXCEPTION, r"exceptions\.ClientError: |an error occurred \(\w", _CLIENT),
    signature(
        _USER,
        Certainty.EXCEPTION,
        r"can't open file '|command not found|(?-i:^Error in )|execution halted|(?-i:^SyntaxError)",
        _SHELL,
    ),
    signature(
        _USER,
        Certainty.EXIT,
        r"\bSIGABRT\b|signal:? 6\b|(?:exit|return) ?code {0,4}[:=]? {0,4}-6\b|core dumped|terminate called"
        r"|\bcheck failed: ",
        _SIGNALS,
        _NATIVE,
    ),
    signature(
        _USER,
        Certainty.EXIT,
        r"^\W{0,9}AlgorithmError|ExecuteUserScriptError|ChildFailedError|CalledProcessError"
        r"|Traceback \(most recent call last\)",
        _SAGEMAKER,
    ),
    signature(
        _USER,
        Certainty.EXIT,
        r"exited with (?:non-zero status|(?:exit )?(?:code|status) [1-9])"
        r"|process returned(?: a non-zero exit|$)"
        r"|(?:exit|return) ?code ?[:=]? {0,4}[1-9]\d{0,2}\b",
        _MPI,
    ),
    signature(
        _USER,
        Certainty.EXIT,
        r"^\W{0,9}ClientError: ",
        _SAGEMAKER,
        "SageMaker blames the request or its data: read the failure reason.",
    ),
)
