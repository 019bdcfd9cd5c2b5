"""Signatures of what stands around the program: its data and its image."""

from trainmaster.failure_classes import FailureClass
from trainmaster.recovery.signature import Certainty, signature

_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"
_DOWNLOAD = "https://github.com/aws/amazon-sagemaker-examples/issues/4384"
_VPC = "https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html"
_KMS = "https://docs.aws.amazon.com/kms/latest/developerguide/policy-conditions.html"
_CREDENTIALS = "https://docs.aws.amazon.com/boto3/latest/guide/credentials.html"
_HUB = "https://huggingface.co/docs/transformers/installation#offline-mode"
_FILE_SYSTEM = "https://github.com/aws/sagemaker-python-sdk/issues/2204"
_ECR = "https://docs.aws.amazon.com/AmazonECR/latest/userguide/repository-policies.html"
_PULL = "https://github.com/aws/sagemaker-python-sdk/issues/57"
_ENTRY = "https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-dockerfile.html"
_DRIVER = "https://docs.nvidia.com/deploy/cuda-compatibility/"

_DATA, _IMAGE = FailureClass.DATA_ACCESS, FailureClass.IMAGE
_ROUTE = (
    "S3 cannot be reached: give the subnets' route table an S3 gateway endpoint or a NAT device, and allow"
    " outbound traffic in the security groups."
)
_OUTSIDE = (
    "The internet cannot be reached from the training job: put the files into S3 or the image, or give its"
    " subnets a NAT device."
)
_STARTS_NOT = "The container does not start: check its entry point, and that it was built for this processor."
_FITS_NOT = "The image's CUDA does not fit the GPU or its driver: use an image made for this instance type."

IMAGE = (
    signature(
        _IMAGE,
        Certainty.CAUSE,
        r"cannot pull (?:the )?(?:algorithm )?(?:container|image)"
        r"|ImagePull(?:BackOff|Error)|CannotPull\w{1,30}Error"
        r"|pull access denied|failed to pull image|requested access to the resource is denied"
        r"|manifest (?:unknown|for .{1,200} not found)|no basic auth credentials",
        _PULL,
    ),
    signature(
        _IMAGE,
        Certainty.CAUSE,
        r"\becr:(?:BatchGetImage|GetDownloadUrlForLayer|BatchCheckLayerAvailability|GetAuthorizationToken)"
        r"|access denied for repository|cannot find repository|cannot find the requested image"
        r"|requested image not found",
        _ECR,
    ),
    signature(
        _IMAGE,
        Certainty.CAUSE,
        r"executable file not found|exec format error|exec user process caused|OCI runtime create failed"
        r"|CannotStartContainerError|exec train failed"
        r"|(?-i:^/usr/bin/env: .{1,60}: No such file)|standard_init_linux|container_linux\.go",
        _ENTRY,
        _STARTS_NOT,
    ),
    signature(
        _IMAGE,
        Certainty.CAUSE,
        r"CUDA driver version is insufficient|cudaErrorInsufficientDriver|no kernel image is available"
        r"|cudaErrorNoKernelImageForDevice|found no NVIDIA driver|forward compatibility was attempted"
        r"|NVIDIA driver on your system is too old|driver/library version mismatch|named symbol not found",
        _DRIVER,
        _FITS_NOT,
    ),
    signature(
        _IMAGE,
        Certainty.CAUSE,
        r"cannot open shared object file|GLIBC(?:XX)?_[\d.]{1,9}'? not found|illegal instruction",
        _ENTRY,
        "A library of the image is missing or made for another processor: rebuild the image.",
    ),
)

DATA_ACCESS = (
    signature(
        _DATA, Certainty.CAUSE, r"route to an S3 VPC endpoint|allow outbound traffic to S3", _VPC, _ROUTE
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"data download failed|unable to download object|artifact upload failed|no S3 objects found under"
        r"|no files? (?:were )?found (?:in|under) (?:path )?/opt/ml/input"
        r"|(?:S3Upload|S3Download)FailedError",
        _DOWNLOAD,
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"\bkms:\w{1,30}|customer master key|KMSAccessDenied|AccessDeniedException.{0,200}(?:kms|ciphertext)",
        _KMS,
        "The key could not be used: allow the job's role kms:Decrypt and kms:GenerateDataKey on it.",
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"an error occurred \((?:40[134]|AccessDenied(?:Exception)?|Forbidden|Unauthorized|NoSuchKey"
        r"|NoSuchBucket|NotFound|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken(?:Exception)?|AllAccessDisabled)\)"
        r"|\bAccessDenied\b|: access denied\b|\bNoSuchBucket\b|\bNoSuchKey\b|not authorized to perform: s3:"
        r"|the specified (?:bucket|key) does not exist|\bs3:(?:GetObject|PutObject|ListBucket)\b",
        _S3,
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"unable to locate credentials|NoCredentialsError|PartialCredentialsError",
        _CREDENTIALS,
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"couldn't connect to 'https?://|HTTPSConnectionPool|NewConnectionError|network is unreachable"
        r"|LocalEntryNotFoundError|max retries exceeded with url|EndpointConnectionError|ConnectTimeoutError"
        r"|ReadTimeoutError|ConnectionClosedError|requests\.exceptions\.\w{1,40}|socket\.gaierror"
        r"|urllib\.error\.URLError"
        r"|ProtocolError: \('Connection",
        _HUB,
        _OUTSIDE,
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"GatedRepoError|RepositoryNotFoundError|(?:401|403) client error|cannot access gated repo",
        _HUB,
        "A repository of the model hub cannot be read: check its name and the token's permissions.",
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"(?:unable to|failed to|cannot) mount|mount\.(?:nfs4?|lustre)|FSx .{0,60}(?:mount|fail)"
        r"|stale file handle|\[Errno 5\] input/output error|remote I/O error",
        _FILE_SYSTEM,
        "The file system cannot be mounted: put the job into its VPC and open its ports to the job.",
    ),
)
