"""Signatures of failures in the program's environment: its data and its image."""

from trainmaster.core.diagnosis.signature import Certainty, signature
from trainmaster.core.jobs.failures import FailureClass

_S3 = "https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"
_DOWNLOAD = "https://github.com/aws/amazon-sagemaker-examples/issues/4384"
_ROLE = "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html"
_CHANNEL = "https://docs.aws.amazon.com/sagemaker/latest/dg/model-train-storage.html"
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
        r"|repository .{1,200} does not exist in the registry|image size .{1,40} (?:greater|larger) than"
        r"|requested image not found|\bECR (?:image|repository)\b|unsupported manifest",
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
        r"cannot open shared object file|version `\w[\w.]{1,40}' not found|illegal instruction"
        r"|undefined symbol: |invalid ELF header|wrong ELF class|cannot execute binary file"
        r"|nvidia-container-cli: (?:requirement|initialization) error",
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
        r"|\b(?:down|up)load failed: (?:s3:|\S{0,200} to s3:|<)|\baws s3 cp\b.{1,300}\bexit [1-9]"
        r"|\bgsutil\b.{1,300}\bexit [1-9]|(?:S3Upload|S3Download)FailedError"
        r"|ensure that the bucket exists|FSTimeoutError",
        _DOWNLOAD,
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"unable to assume (?:the )?role|\(AccessDenied\w{0,10}\) when calling the AssumeRole"
        r"|not authorized to perform: sts:AssumeRole",
        _ROLE,
        "SageMaker cannot assume the job's role: check its name, and that it trusts sagemaker.amazonaws.com.",
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"(?:FileNotFound|Permission|NotADirectory|IsADirectory|OS|IO|NotFound|PermissionDenied)Error\b"
        r".{0,200}(?:/opt/ml/input/data|\bs3://|[\s'\"]/fsx/|/mnt/(?:fsx|efs|s3))"
        r"|(?:no such file|not found|cannot (?:stat|open|access)|does not exist).{0,60}/opt/ml/input/data"
        r"|/opt/ml/input/data\S{0,200} {0,2}"
        r"(?:no such file|does not exist|not found|permission denied|is empty)",
        _CHANNEL,
        "The input is not where the program looks: compare its paths with the names of the channels.",
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"\bkms:\w{1,30}|\bKMS\.\w{1,40}|customer master key|KMSAccessDenied"
        r"|AccessDeniedException.{0,200}(?:kms|ciphertext)",
        _KMS,
        "The key could not be used: allow the job's role kms:Decrypt and kms:GenerateDataKey on it.",
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"an error occurred \((?:40[134]|[\w.]{0,30}(?:AccessDenied|Forbidden|Unauthorized|NoSuchKey"
        r"|NoSuchBucket|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|AllAccessDisabled|TooSkewed|UnrecognizedClient"
        r"|InvalidClientTokenId|InvalidToken|PermanentRedirect|AuthFailure)[\w.]{0,20}|NotFound)\)"
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
        r"|ReadTimeoutError|ConnectionClosedError"
        r"|requests\.exceptions\.(?:Connect|Read|Timeout|SSL|Proxy|Chunked)\w{0,40}|socket\.gaierror"
        r"|urllib\.error\.URLError|certificate verify failed|temporary failure in name resolution"
        r"|could not resolve host|HfHubHTTPError|\b5\d\d server error: "
        r"|httpx\.\w{0,20}(?:Connect|Timeout)\w{0,20}"
        r"|ProtocolError: \('Connection",
        _HUB,
        _OUTSIDE,
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"GatedRepoError|RepositoryNotFoundError|(?:401|403) client error|cannot access gated repo"
        r"|DatasetNotFoundError",
        _HUB,
        "A repository of the model hub cannot be read: check its name and the token's permissions.",
    ),
    signature(
        _DATA,
        Certainty.CAUSE,
        r"(?:unable to|failed to|cannot) mount|mount\.(?:nfs4?|lustre)|FSx .{0,60}(?:mount|fail)"
        r"|stale file handle|\[Errno 5\] input/output error|remote I/O error"
        r"|transport endpoint is not connected: b?['\"/]"
        r"|(?:cannot|unable to) .{1,200}: transport endpoint is not connected",
        _FILE_SYSTEM,
        "The file system cannot be mounted: put the job into its VPC and open its ports to the job.",
    ),
)
