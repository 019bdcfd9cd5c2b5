"""The twin's own API for tests and demos: clock, faults, training jobs. The front door asks for its token."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from local.account.account_answers import AccountAround
from local.clock import TwinClock
from local.control_body import BadFieldError, Body, bought_plan, plan_change
from local.denials import Denial
from local.deployment.events.delivery_faults import DeliveryFaults
from local.deployment.lambda_runtime.invocation import Outcome
from local.faults import Faults
from local.sagemaker.training_plans import Window
from local.wire import AwsError, Request, Response
from local.world_in_force import WorldInForce
from local.worlds import CAPACITY_TYPES, World, WorldError, shown
from local.worlds.world_reading import MOST_SECONDS

PREFIX = "/_control"
_JSON = "application/json"
_MOST_PERCENT = 100


class TrainingJobs(Protocol):
    """Changes to training jobs that come from outside the API."""

    def fail(self, training_job: str, reason: str | None = None, exit_code: int | None = None) -> None: ...

    def gpu(self, training_job: str, host: str | None, percent: float, from_minute: int | None) -> None: ...

    def spot(self, training_job: str, action: str) -> None: ...

    def slow_stop(self, training_job: str, seconds: float) -> None: ...

    def withhold_capacity(self, instance_type: str, times: int) -> None: ...

    def buy_plan(
        self, name: str, *, instance_type: str, instances: int, windows: Sequence[Window], fee_usd: float
    ) -> str: ...

    def change_plan(
        self, name: str, *, unhealthy: int | None, extend_to: datetime | None, failure: str | None
    ) -> None: ...

    def training_jobs(self) -> list[dict[str, Any]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    clock: TwinClock
    errors: Faults
    deliveries: DeliveryFaults
    training: TrainingJobs
    world: WorldInForce
    account: AccountAround
    invoke: Callable[[str, bytes], Outcome]
    """Runs a function of the stack, by the name its sessions have; KeyError for one that there is not."""
    told: Callable[[], Mapping[str, Any]]
    """Reports what no call of AWS's API shows; part of the answer about the world."""

    def handle(self, request: Request) -> Response:
        path = request.raw_path.removeprefix(PREFIX)
        routes = self._routes()
        route = routes.get((request.method, path))
        if route is None:
            known = ", ".join(" ".join(key) for key in routes)
            return _answer(404, {"message": f"no {request.method} {path}; there are {known}"})
        if request.method != "GET" and not _is_json(request):
            message = f"send the body with the header Content-Type: {_JSON}"
            return _answer(403, {"field": "content-type", "message": message})
        try:
            return route(request)
        except (BadFieldError, WorldError) as error:
            return _answer(400, {"field": error.name, "message": str(error)})
        except AwsError as error:
            return _answer(400, {"code": error.code, "message": error.message})

    def _routes(self) -> Mapping[tuple[str, str], Callable[[Request], Response]]:
        return {
            ("GET", "/account"): lambda _: _answer(200, {"account": self.account.document}),
            ("POST", "/account"): self._set_account,
            ("POST", "/clock"): self._advance,
            ("POST", "/capacity"): self._withhold_capacity,
            ("POST", "/deny"): self._deny,
            ("POST", "/errors"): self._inject_errors,
            ("POST", "/events"): self._disturb_events,
            ("POST", "/fail"): self._fail,
            ("POST", "/gpu"): self._gpu,
            ("POST", "/invoke"): self._invoke,
            ("POST", "/plan"): self._buy_plan,
            ("POST", "/plan-change"): self._change_plan,
            ("POST", "/quota"): self._set_quota,
            ("POST", "/slow-stop"): self._slow_stop,
            ("POST", "/spot"): self._spot,
            ("GET", "/training-jobs"): self._list,
            ("GET", "/world"): lambda _: self._told(self.world.now),
            ("POST", "/world"): self._set_world,
        }

    def _advance(self, request: Request) -> Response:
        body = Body(request.body)
        seconds = body.number("advance_seconds", most=MOST_SECONDS)
        body.end()
        if not self.clock.manual:
            message = "this twin runs on the machine's clock; start it with --clock manual to move time"
            return _answer(409, {"message": message})
        now = self.clock.advance(timedelta(seconds=seconds))
        return _answer(200, {"clock": now.isoformat(timespec="milliseconds").replace("+00:00", "Z")})

    def _withhold_capacity(self, request: Request) -> Response:
        body = Body(request.body)
        instance_type, times = body.text("instance_type"), body.whole("times", default=1, least=1)
        body.end()
        self.training.withhold_capacity(instance_type, times)
        return _answer(200, {"instance_type": instance_type, "times": times})

    def _buy_plan(self, request: Request) -> Response:
        plan = bought_plan(request.body)
        arn = self.training.buy_plan(
            plan.name,
            instance_type=plan.instance_type,
            instances=plan.instances,
            windows=plan.windows,
            fee_usd=plan.fee_usd,
        )
        return _answer(200, {"arn": arn})

    def _change_plan(self, request: Request) -> Response:
        change = plan_change(request.body)
        self.training.change_plan(
            change.name, unhealthy=change.unhealthy, extend_to=change.extend_to, failure=change.failure
        )
        return _answer(200, {"name": change.name})

    def _set_quota(self, request: Request) -> Response:
        body = Body(request.body)
        instance_type, instances = body.text("instance_type"), body.whole("instances")
        capacity_type = body.optional("capacity_type", body.text) or "on-demand"
        body.end()
        if capacity_type not in CAPACITY_TYPES:
            raise AwsError("ValidationException", f"capacity_type must be one of {', '.join(CAPACITY_TYPES)}")
        self.world.set_quota(instance_type, capacity_type, instances)
        answer = {"instance_type": instance_type, "capacity_type": capacity_type, "instances": instances}
        return _answer(200, answer)

    def _inject_errors(self, request: Request) -> Response:
        body = Body(request.body)
        if body.optional("clear", body.yes):
            body.end()
            self.errors.clear()
            return _answer(200, {"clear": True})
        operation, times = body.text("operation"), body.whole("times", default=1)
        code = body.text("error_code") if times else body.optional("error_code", body.text)
        principal = body.optional("principal", body.text)
        body.end()
        if code is not None and times:
            self.errors.set(operation, code, times, principal=principal)
        else:
            self.errors.end(operation, principal=principal)
        answer = {"operation": operation, "error_code": code, "times": times, "principal": principal}
        return _answer(200, answer)

    def _deny(self, request: Request) -> Response:
        body = Body(request.body)
        operation, seconds = body.text("operation"), body.number("seconds", most=MOST_SECONDS)
        principal, role_arn = body.optional("principal", body.text), body.optional("role_arn", body.text)
        body.end()
        denial = Denial(operation=operation, principal=principal, role_arn=role_arn)
        self.errors.denials.deny(denial, timedelta(seconds=seconds), now=self.clock.now())
        answer = {"operation": operation, "principal": principal, "role_arn": role_arn, "seconds": seconds}
        return _answer(200, answer)

    def _slow_stop(self, request: Request) -> Response:
        body = Body(request.body)
        training_job, seconds = body.text("training_job"), body.number("seconds", most=MOST_SECONDS)
        body.end()
        self.training.slow_stop(training_job, seconds)
        return _answer(200, {"training_job": training_job, "seconds": seconds})

    def _disturb_events(self, request: Request) -> Response:
        body = Body(request.body)
        shares = {name: body.share_or_count(name) for name in ("drop", "duplicate", "reorder")}
        seed = body.whole("seed", default=0)
        body.end()
        self.deliveries.set(**shares, seed=seed)
        return _answer(200, shares | {"seed": seed})

    def _fail(self, request: Request) -> Response:
        body = Body(request.body)
        training_job = body.text("training_job")
        reason = body.optional("reason", body.text)
        exit_code = body.optional("exit_code", body.whole)
        body.end()
        self.training.fail(training_job, reason=reason, exit_code=exit_code)
        return _answer(200, {"training_job": training_job})

    def _gpu(self, request: Request) -> Response:
        body = Body(request.body)
        training_job, host = body.text("training_job"), body.optional("host", body.text)
        percent = body.number("percent", most=_MOST_PERCENT)
        from_minute = body.optional("from_minute", body.whole)
        body.end()
        self.training.gpu(training_job, host, percent, from_minute)
        answer = {"training_job": training_job, "host": host, "percent": percent, "from_minute": from_minute}
        return _answer(200, answer)

    def _invoke(self, request: Request) -> Response:
        """Invoke a function as a caller with ``lambda:InvokeFunction`` on it."""
        body = Body(request.body)
        name, event = body.text("function"), body.mapping("event")
        body.end()
        try:
            outcome = self.invoke(name, json.dumps(event).encode())
        except KeyError as error:
            raise BadFieldError("function", f"there is no function {name!r}") from error
        return _answer(200, {"failed": outcome.failed, "answer": json.loads(outcome.payload)})

    def _spot(self, request: Request) -> Response:
        body = Body(request.body)
        training_job, action = body.text("training_job"), body.text("action")
        body.end()
        self.training.spot(training_job, action)
        return _answer(200, {"training_job": training_job, "action": action})

    def _set_account(self, request: Request) -> Response:
        body = Body(request.body)
        values = body.mapping("set")
        body.end()
        return _answer(200, {"account": self.account.set(values)})

    def _set_world(self, request: Request) -> Response:
        body = Body(request.body)
        values = body.mapping("set")
        body.end()
        return self._told(self.world.set(values))

    def _told(self, world: World) -> Response:
        return _answer(200, {"world": shown(world), **self.told()})

    def _list(self, _: Request) -> Response:
        return _answer(200, {"training_jobs": self.training.training_jobs()})


def _is_json(request: Request) -> bool:
    """Tell whether the body calls itself JSON, which no page of another origin can do without being asked.

    Browsers send text/plain, forms and bodies without a type to any server, and ask it before they send JSON.
    """
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == _JSON


def _answer(status: int, document: Mapping[str, Any]) -> Response:
    body = json.dumps(document, default=str).encode()
    return Response(status=status, body=body, headers={"content-type": _JSON})
