"""The metrics that CloudWatch gets of invocations.

Source: Lambda Developer Guide, "Types of metrics for Lambda functions".
"""

from dataclasses import dataclass

from local.clock import TwinClock
from local.cloudwatch.cloudwatch_twin import CloudWatchTwin
from local.cloudwatch.metrics import Metric
from local.deployment.lambda_runtime.invocation import Outcome

_NAMESPACE = "AWS/Lambda"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    cloudwatch: CloudWatchTwin
    clock: TwinClock

    def invoked(self, function_arn: str, outcome: Outcome) -> None:
        """Note one invocation that was not throttled."""
        function = frozenset({("FunctionName", function_arn.rpartition(":")[2])})
        for name, value in (("Invocations", 1.0), ("Errors", float(outcome.failed)), ("Throttles", 0.0)):
            metric = Metric(namespace=_NAMESPACE, name=name, dimensions=function)
            self.cloudwatch.put(metric, value, at=self.clock.now(), unit="Count")
