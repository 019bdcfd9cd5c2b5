"""Brings a deployed stack to life: its functions, and everything that calls them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from local.deployment.events.alarm_actions import AlarmActions
from local.deployment.events.router import EventRouter
from local.deployment.events.rule_book import RuleBook
from local.deployment.events.schedules import Scheduler
from local.deployment.events.topics import Topics
from local.deployment.gateway.resource_policy import parse_resource_policy
from local.deployment.gateway.rest_stage import RestApi
from local.deployment.gateway.routes import Routes
from local.deployment.lambda_runtime.asynchronous import AsyncInvoker
from local.deployment.lambda_runtime.function_environment import TwinAddress
from local.deployment.lambda_runtime.functions import Functions, Host
from local.deployment.lambda_runtime.measured import Measured
from local.deployment.lambda_runtime.queue_trigger import QueueReader, SqsQueue
from local.deployment.lambda_runtime.runtime_api import PREFIX as RUNTIME_PREFIX
from local.deployment.lambda_runtime.runtime_api import RuntimeApi
from local.deployment.platform import Platform
from local.deployment.rights import Rights
from local.deployment.wiring import QueueTrigger, Stage, Wiring
from local.wire import Request, Response

API_PREFIX = "/_api/"

Answered = Callable[[Request, str, Response], None]
"""(request, path behind the stage, response of the function)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    functions: Functions
    router: EventRouter
    api_url: str
    """The first stage there is."""
    warm_first: tuple[str, ...]
    """Functions that something triggers, in the order in which somebody is likely to wait for them."""

    def warm(self) -> None:
        """Start a process of each function, so that first calls are fast."""
        self.functions.warm(self.warm_first)

    def close(self) -> None:
        """End the processes of the functions."""
        self.functions.close()


def assemble(wiring: Wiring, platform: Platform, *, answered: Answered) -> Assembly:
    """Start what triggers functions.

    Raises:
        TemplateError: The stack lacks a right that its wiring needs.
    """
    rights = Rights(
        wiring=wiring,
        roles=platform.identities,
        region=platform.region,
        account_id=platform.account_id,
    )
    rights.check()
    functions = _functions(wiring, platform, rights)
    invoker = AsyncInvoker(
        clock=platform.clock,
        background=platform.background,
        invoke=functions.invoke,
        settings=wiring.async_settings,
        deliver_failure=_queues(platform),
    )
    router = _router(wiring, platform, invoker)
    _act_on_alarms(platform, _listen_to_topics(wiring, platform, invoker))
    for trigger in wiring.queue_triggers:
        _listen_to_queue(trigger, platform, functions)
    for stage in wiring.stages:
        _serve(stage, wiring, platform, _Served(functions=functions, answered=answered))
    _start_schedules(wiring, platform, invoker)
    stage = wiring.stages[0]
    api_url = f"{platform.door.endpoint_url}{API_PREFIX}{stage.api_id}/{stage.name}"
    return Assembly(functions=functions, router=router, api_url=api_url, warm_first=_warm_first(wiring))


def _warm_first(wiring: Wiring) -> tuple[str, ...]:
    routed = (arn for api in wiring.apis.values() for arn in api.routes.values())
    queued = (trigger.function_arn for trigger in wiring.queue_triggers)
    subscribed = (subscription.function_arn for subscription in wiring.subscriptions)
    timed = (schedule.function_arn for schedule in wiring.schedules)
    ruled = (arn for rule in wiring.rules for arn in rule.function_arns)
    return tuple(dict.fromkeys([*routed, *queued, *ruled, *subscribed, *timed]))


def _functions(wiring: Wiring, platform: Platform, rights: Rights) -> Functions:
    functions = Functions(
        runtime_api=RuntimeApi(platform.clock),
        invoked=Measured(cloudwatch=platform.cloudwatch, clock=platform.clock).invoked,
    )
    runtime_url = platform.door.mount(RUNTIME_PREFIX, functions.runtime_api.handle)
    twin_address = TwinAddress(region=platform.region, endpoint_url=platform.door.endpoint_url)
    host = Host(
        twin_address=twin_address,
        runtime_url=runtime_url,
        clock=platform.clock,
        clock_file=platform.clock_file,
        logs=platform.logs,
        read_log=platform.cloudwatch.read_log,
        log_folder=platform.log_folder,
        rights=rights,
    )
    for function in wiring.functions.values():
        keys = platform.identities.assume(function.role_arn, function.session_name)
        functions.add(function, keys, host)
    return functions


def _queues(platform: Platform) -> Callable[[str, str], None]:
    def send(queue_arn: str, message: str) -> None:
        sqs = platform.client("sqs")
        url = sqs.get_queue_url(QueueName=_name_of(queue_arn))["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody=message)

    return send


def _router(wiring: Wiring, platform: Platform, invoker: AsyncInvoker) -> EventRouter:
    def forward(operation: str, params: dict[str, Any]) -> dict[str, Any]:
        client = platform.client("events")
        answer = getattr(client, _method_of(client, operation))(**params)
        return {key: value for key, value in answer.items() if key != "ResponseMetadata"}

    router = EventRouter(
        rules=wiring.rules,
        faults=platform.deliveries,
        clock=platform.clock,
        region=platform.region,
        account_id=platform.account_id,
        deliver=invoker.submit,
        forward=forward,
        book=RuleBook(forward),
        send=_queues(platform),
    )
    platform.door.mount_service("events", router.call)
    return router


def _method_of(client: Any, operation: str) -> str:  # noqa: ANN401  a boto3 client
    (method,) = [name for name, known in client.meta.method_to_api_mapping.items() if known == operation]
    return str(method)


def _listen_to_topics(wiring: Wiring, platform: Platform, invoker: AsyncInvoker) -> Topics:
    topics = Topics(subscriptions=wiring.subscriptions, clock=platform.clock, deliver=invoker.submit)
    platform.door.add_listener("sns", "Publish", topics.published)
    return topics


def _act_on_alarms(platform: Platform, topics: Topics) -> None:
    actions = AlarmActions(client=platform.client, background=platform.background, published=topics.published)
    platform.cloudwatch.listen(actions.happened)


def _listen_to_queue(trigger: QueueTrigger, platform: Platform, functions: Functions) -> None:
    sqs = platform.client("sqs")
    name = _name_of(trigger.queue_arn)
    reader = QueueReader(
        trigger,
        queue=SqsQueue(sqs, sqs.get_queue_url(QueueName=name)["QueueUrl"]),
        clock=platform.clock,
        background=platform.background,
        invoke=functions.invoke,
    )

    def sent(params: dict[str, Any]) -> None:
        if _name_of(params.get("QueueUrl", ""), separator="/") != name:
            return
        entries = params.get("Entries", [params])
        delay = max((int(entry.get("DelaySeconds", 0)) for entry in entries), default=0)
        reader.wake()
        if delay:
            platform.clock.call_later(timedelta(seconds=delay), reader.wake)

    platform.door.add_listener("sqs", "SendMessage", sent)
    platform.door.add_listener("sqs", "SendMessageBatch", sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    functions: Functions
    answered: Answered


def _serve(stage: Stage, wiring: Wiring, platform: Platform, served: _Served) -> None:
    api = wiring.apis[stage.api_id]
    prefix = f"{API_PREFIX}{stage.api_id}/{stage.name}"
    rest_api = RestApi(
        api_id=stage.api_id,
        stage=stage.name,
        prefix=prefix,
        arn=f"arn:aws:execute-api:{platform.region}:{platform.account_id}:{stage.api_id}",
        routes=Routes(api.routes),
        policy=() if api.policy is None else parse_resource_policy(api.policy),
        callers=platform.door.authorizer,
        invoke=served.functions.invoke,
        clock=platform.clock,
        answered=served.answered,
    )
    platform.door.mount_rest_api(prefix, rest_api.handle)


def _start_schedules(wiring: Wiring, platform: Platform, invoker: AsyncInvoker) -> None:
    scheduler = Scheduler(
        clock=platform.clock,
        region=platform.region,
        account_id=platform.account_id,
        deliver=invoker.submit,
    )
    for schedule in wiring.schedules:
        scheduler.start(schedule)


def _name_of(arn_or_url: str, *, separator: str = ":") -> str:
    return arn_or_url.rpartition(separator)[2]
