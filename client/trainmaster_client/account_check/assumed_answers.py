"""Assumptions of the code about what SageMaker's calls answer (groups 1 to 4 of the guide)."""

from trainmaster_client.account_check import answer_verdicts
from trainmaster_client.account_check.answer_verdicts import LEAST_PER_SECOND
from trainmaster_client.account_check.facts import Fact, Look, Need, recorded

_ADAPTER = "trainmaster.adapters.sagemaker"
_START = "trainmaster.services.scheduler.start_protocol"
_OBSERVER = "trainmaster.services.observer"
_FINAL = (
    "a code that refuses the request (TrainingRefusedError): the job waits, says why, and fails if only it is"
    " refused; or it starts and fails there"
)
_LIMIT = "a code for limits (AccountLimitError): the job waits, others of its type go on"


def _refused(what: str, question: str, assumes: str = _FINAL, **others: tuple[Need, ...]) -> Fact:
    return Fact(
        id=f"refused-{what}",
        group=1,
        question=f"CreateTrainingJob with {question}?",
        assumes=assumes,
        where=(_ADAPTER, _START),
        look=Look.REFUSALS,
        judge=answer_verdicts.probe(f"refused-{what}"),
        needs=others.get("needs", ()),
    )


_REFUSALS = (
    _refused("role", "a role that does not exist"),
    _refused("image", "an image that does not exist"),
    _refused("type", "an instance type that nobody knows"),
    _refused("subnet", "a subnet that does not exist"),
    _refused("volume-key", "a KMS key that does not exist"),
    _refused("bucket", "an output bucket that does not exist"),
    _refused("input", "an S3 prefix without objects as input"),
    _refused("tag", "a tag key that is AWS's own (aws:)"),
    _refused("instances", "more instances than the account or one job may have", _LIMIT),
    _refused("run-time", "28 days of run time, when the default limit is 5", f"{_LIMIT}; or it is taken"),
    _refused(
        "keep-alive",
        "21,600 s of keep-alive",
        "refused in whatever way, it is sent once more without what we added; or it is taken",
    ),
    _refused("quota-zero", "a type whose quota is 0", _LIMIT, needs=(Need.QUOTA_LIST,)),
)

_PENDING = tuple(
    Fact(
        id=f"pending-{what}",
        group=2,
        question=f"MaxPendingTimeInSeconds {question}?",
        assumes="taken, or refused in whatever way and then sent once more without it",
        where=(_START, "trainmaster.core.request.request_shapes"),
        look=Look.PENDING if needs else Look.REFUSALS,
        judge=answer_verdicts.probe(f"pending-{what}"),
        needs=needs,
    )
    for what, question, needs in (
        ("cpu", "with a type that is not accelerated", ()),
        ("gpu", "with an accelerated type", (Need.GPU,)),
        ("spot", "with managed spot training", (Need.GPU,)),
        ("preferences", "with InstancePreferences", (Need.GPU,)),
    )
)


def _rate(operation: str, per_second: float) -> Fact:
    return Fact(
        id=f"rate-{operation.partition('TrainingJob')[0].lower()}",
        group=3,
        question=f"How many {operation} calls a second does the account allow?",
        assumes=f"at least {per_second:g}; above it a code for later (UnavailableError)",
        where=(_ADAPTER, "trainmaster.services.reconciler", "trainmaster.services.scheduler.executor"),
        look=Look.RATES,
        judge=answer_verdicts.rate(operation),
    )


_RATES = (
    *(_rate(operation, least) for operation, least in LEAST_PER_SECOND.items()),
    Fact(
        id="latency",
        group=3,
        question="How long does a call of SageMaker take?",
        assumes="p99 below the 10 s after which a function gives up",
        where=("trainmaster.bootstrap",),
        look=Look.RATES,
        judge=answer_verdicts.latency,
    ),
)

_READS = (
    Fact(
        id="read-after-create",
        group=4,
        question="How soon after Create do Describe, ListTags and List know the job?",
        assumes="within 60 s; until then the start is asked for again, never taken for another's",
        where=(_START,),
        look=Look.READS,
        judge=recorded("first_read_seconds", answer_verdicts.first_reads),
    ),
    Fact(
        id="unknown-name",
        group=4,
        question="What do Describe, Stop and Update answer about a name that nobody has?",
        assumes="Describe: ResourceNotFound, or ValidationException: Requested resource not found; "
        "Stop and Update: either code, whatever the words",
        where=(_ADAPTER, _OBSERVER),
        look=Look.READS,
        judge=recorded("unknown_name", answer_verdicts.unknown_name),
    ),
    Fact(
        id="used-name",
        group=4,
        question="What does Create answer for a name that is taken?",
        assumes="ResourceInUse (NameTakenError): its tags say whose it is",
        where=(_ADAPTER, _START),
        look=Look.READS,
        judge=recorded("used_name", answer_verdicts.used_name),
    ),
)

ANSWERS: tuple[Fact, ...] = (*_REFUSALS, *_PENDING, *_RATES, *_READS)
