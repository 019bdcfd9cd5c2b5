"""The whole twin in one process: composes its parts, deploys the stack, answers what a user needs to know."""

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Any

from botocore.credentials import Credentials

from local import foundation, policy_file
from local.account.account_answers import SERVICES as ACCOUNT_SERVICES
from local.account.account_answers import STUDIO_CALLS, AccountAround
from local.clock import each_minute
from local.config import ReadyInfo, TwinConfig
from local.control import PREFIX as CONTROL_PREFIX
from local.control import Control
from local.deployment.assembly import API_PREFIX, Assembly, assemble
from local.deployment.background import Background
from local.deployment.events.delivery_faults import DeliveryFaults
from local.deployment.platform import Platform
from local.deployment.resources.kinds import Site
from local.deployment.stack import deploy
from local.deployment.template import load_template
from local.deployment.wiring import Wiring
from local.doors.iam_roles import IamRoles
from local.foundation import USER, Foundation
from local.identity.checks import Check
from local.sagemaker import Outside, SageMakerTwin
from local.sagemaker.adapters import CloudWatchLogSink, CloudWatchMetrics, S3Store
from local.sagemaker.loads import NAMESPACE
from local.sdk_defaults import write_defaults
from local.wire import AwsError, Principal
from local.world_in_force import WorldInForce

STACK = "trainmaster"
_TRAINING_ROLE = "trainmaster-local-training"


class Twin:
    """Runs from ``start`` to ``close``; one at a time in a process, because moto has one state."""

    def __init__(self, config: TwinConfig) -> None:
        self._config = config
        self._resources = ExitStack()

    def __enter__(self) -> ReadyInfo:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> ReadyInfo:
        """Deploy everything and put the policy.

        Raises:
            DeploymentError: The template, a parameter or the policy is not accepted.
            OSError: The port is in use, or a file cannot be written.
        """
        try:
            return self._start()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End all processes and free the port; nothing is left but the state folder."""
        self._resources.close()

    def _start(self) -> ReadyInfo:
        base = foundation.lay(self._config, self._resources)
        memory = policy_file.PolicyMemory(path=base.state / "policy.json")
        background = Background(base.clock.activity)
        deliveries = DeliveryFaults(base.clock, seed=self._config.seed)
        wiring = self._deploy(base)
        platform = self._platform(base, background, deliveries)
        assembly = assemble(wiring, platform, answered=memory.answered)
        # In this order, so that on closing nothing new begins before what runs is ended.
        self._resources.callback(background.close)
        self._resources.callback(assembly.close)
        control_url = self._mount_training(base, assembly, deliveries)
        _mount_roles(base)
        base.door.start()
        background.run("warming functions", assembly.warm)
        ready = self._ready(base, assembly, control_url)
        policy = memory.recall() if self._config.policy is None else self._config.policy
        if policy is not None:
            keys = Credentials(ready.access_key_id, ready.secret_access_key)
            policy_file.put_policy(policy, api_url=ready.api_url, credentials=keys, region=ready.region)
        return ready

    def _deploy(self, base: Foundation) -> Wiring:
        config, account = self._config, base.account_id
        bucket = _bucket(base, config)
        base.engine.client("s3").create_bucket(Bucket=bucket)
        defaults = {
            "VpcEndpointIds": "vpce-local",
            "CallerAccounts": account,
            "CallerPrincipalArns": base.admin.principal.arn,
            "AdminPrincipalArns": base.admin.principal.arn,
            "TrainingRoleArns": ",".join(_roles(base)),
            "CheckpointBuckets": f"arn:aws:s3:::{bucket}",
            "StopUnmanagedJobs": "true",
        }
        template = load_template(
            config.template, defaults=defaults, given=config.parameters, region=config.region
        )
        site = Site(
            stack=STACK,
            region=config.region,
            account_id=account,
            folder=template.folder,
            client=base.engine.client,
            roles=base.identities,
            wiring=Wiring(),
        )
        return deploy(template, site, api_root=f"{base.door.endpoint_url}{API_PREFIX}").wiring

    def _platform(self, base: Foundation, background: Background, deliveries: DeliveryFaults) -> Platform:
        return Platform(
            door=base.door,
            client=base.engine.client,
            logs=CloudWatchLogSink(base.engine.client("logs")),
            cloudwatch=base.engine.cloudwatch,
            identities=base.identities,
            clock=base.clock,
            background=background,
            deliveries=deliveries,
            region=self._config.region,
            account_id=base.account_id,
            clock_file=base.clock_file,
            log_folder=foundation.own_folder(base.state, "logs"),
        )

    def _mount_account(self, base: Foundation, training: SageMakerTwin) -> AccountAround:
        """Mount what the account says of itself: alone, and beside what SageMaker's twin answers."""
        account = AccountAround(account_id=base.account_id, region=self._config.region)
        for service in ACCOUNT_SERVICES:
            base.door.mount_service(service, account.call)

        def sagemaker(operation: str, params: dict[str, Any], caller: Principal) -> dict[str, Any]:
            answers = account.call if operation in STUDIO_CALLS else training.call
            return answers(operation, params, caller)

        def quotas(operation: str, params: dict[str, Any], caller: Principal) -> dict[str, Any]:
            return account.with_warm_pools(training.service_quotas(operation, params, caller))

        def owns(operation: str, params: Mapping[str, Any]) -> bool:
            return operation in STUDIO_CALLS or training.owns(operation, params)

        base.door.mount_service("sagemaker", sagemaker, owns=owns)
        base.door.mount_service("service-quotas", quotas)
        return account

    def _mount_training(self, base: Foundation, assembly: Assembly, deliveries: DeliveryFaults) -> str:
        """Serve SageMaker and what is done to it from outside; answers the URL of the control calls."""
        world = WorldInForce(self._config.world)
        outside = Outside(
            clock=base.clock,
            journal=base.journal,
            store=S3Store(base.engine.client("s3")),
            logs=CloudWatchLogSink(base.engine.client("logs")),
            metrics=CloudWatchMetrics(base.engine.cloudwatch),
            region=self._config.region,
            work_dir=foundation.own_folder(base.state, "training"),
            environment=partial(_reach, base),
            may_publish=partial(_may_publish, base),
            world=world,
        )
        training = SageMakerTwin(
            outside, events=assembly.router, account_id=base.account_id, seed=self._config.seed
        )
        self._resources.callback(training.close)
        each_minute(base.clock, training.measure, base.engine.cloudwatch.evaluate)
        account = self._mount_account(base, training)
        base.door.add_resource_tags("sagemaker", training.resource_tags)
        control = Control(
            clock=base.clock,
            errors=base.faults,
            deliveries=deliveries,
            training=training,
            world=world,
            account=account,
            invoke=assembly.functions.invoke_named,
            told=lambda: {
                "throttled": training.throttled(),
                "killed_invocations": assembly.functions.killed(),
            },
        )
        return base.door.mount(CONTROL_PREFIX, control.handle)

    def _ready(self, base: Foundation, assembly: Assembly, control_url: str) -> ReadyInfo:
        role_arn, bucket = _role_arn(base), _bucket(base, self._config)
        return ReadyInfo(
            pid=os.getpid(),
            endpoint_url=base.door.endpoint_url,
            api_url=assembly.api_url,
            control_url=control_url,
            region=self._config.region,
            account_id=base.account_id,
            access_key_id=base.admin.access_key_id,
            secret_access_key=base.admin.secret_access_key,
            role_arn=role_arn,
            bucket=bucket,
            sdk_defaults=str(write_defaults(base.state, bucket=bucket, role_arn=role_arn)),
        )


def _may_publish(base: Foundation, role_arn: str) -> bool:
    """Tell whether the hosts of a job under this role publish metrics.

    Source: SageMaker developer guide, "CreateTrainingJob API: Execution role permissions".
    """
    question = Check(
        action="cloudwatch:PutMetricData", resource="*", context={"cloudwatch:namespace": NAMESPACE}
    )
    return base.door.authorizer.allows(role_arn, question)


def _mount_roles(base: Foundation) -> None:
    roles = IamRoles(
        authorizer=base.door.authorizer,
        account_id=base.account_id,
        arns=_roles(base),
        is_made=lambda arn: base.engine.policies_of(arn) is not None,
    )
    base.door.mount_service("iam", roles.call, owns=roles.owns)


def _reach(base: Foundation, role_arn: str) -> dict[str, str]:
    """Return how a container reaches AWS: with keys of its own role; other accounts' roles have none."""
    reach = {"AWS_ENDPOINT_URL": base.door.endpoint_url}
    with suppress(AwsError):
        keys = base.identities.assume(role_arn, "SageMaker")
        reach |= {
            "AWS_ACCESS_KEY_ID": keys.access_key_id,
            "AWS_SECRET_ACCESS_KEY": keys.secret_access_key,
            "AWS_SESSION_TOKEN": keys.session_token or "",
        }
    return reach


def _bucket(base: Foundation, config: TwinConfig) -> str:
    """Return the name that the SageMaker SDK gives its default bucket."""
    return f"sagemaker-{config.region}-{base.account_id}"


def _role_arn(base: Foundation) -> str:
    return f"arn:aws:iam::{base.account_id}:role/{_TRAINING_ROLE}"


def _roles(base: Foundation) -> tuple[str, str]:
    """Return the roles for training: ours, and the one that the SDK's get_execution_role() finds.

    It looks for a role of the caller's name, and the caller is a user.
    """
    return _role_arn(base), f"arn:aws:iam::{base.account_id}:role/{USER}"
