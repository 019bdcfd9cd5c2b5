"""The gateway in this process, between boto3 and a fake API beside a fake SageMaker."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import boto3
import uvicorn
from botocore.config import Config
from botocore.credentials import Credentials
from trainmaster_client.dashboard.dashboard_routes import dashboard_pages
from trainmaster_client.gateway.gateway_server import application_of, assembled, listening_on, server_of

from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, FakeApi, running_fake_api
from tests.integration.client.fake_sagemaker import FakeSageMaker, running_sagemaker

Document = dict[str, Any]
TOKEN = "the-token-of-this-gateway"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayWorld:
    api: FakeApi
    sagemaker: FakeSageMaker
    port: int
    ui_url: str
    """Good once."""
    _clients: dict[tuple[str, ...], Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{TOKEN}"

    def client(
        self, key: str = "AKIAOFANOTHER", secret: str = "any", *, url: str = "", region: str = REGION
    ) -> Any:
        """Plain boto3, which calls once."""
        name = (key, secret, url, region)
        if name not in self._clients:
            self._clients[name] = boto3.client(
                "sagemaker",
                endpoint_url=url or self.url,
                region_name=region,
                aws_access_key_id=key,
                aws_secret_access_key=secret,
                config=Config(retries={"total_max_attempts": 1}),
            )
        return self._clients[name]


@contextmanager
def running_gateway(
    load: Callable[[], Credentials | None] = lambda: Credentials(ACCESS_KEY, SECRET_KEY),
    *,
    are_changes_allowed: bool = False,
    api_url: str = "",
    proxies: frozenset[str] = frozenset(),
) -> Iterator[GatewayWorld]:
    with running_fake_api() as api, running_sagemaker() as sagemaker:
        env = {"TRAINMASTER_API_URL": api_url or api.url, "AWS_DEFAULT_REGION": REGION}
        parts = replace(assembled({**env, **_endpoint(sagemaker.url)}, load), proxies=proxies)
        with listening_on(0) as listening:
            port = listening.getsockname()[1]
            app, ui_url = application_of(
                parts,
                port=port,
                token=TOKEN,
                are_changes_allowed=are_changes_allowed,
                more_pages=dashboard_pages(parts),
            )
            server = server_of(app)
            thread = threading.Thread(target=_run, args=(server, listening), daemon=True)
            thread.start()
            try:
                yield GatewayWorld(api=api, sagemaker=sagemaker, port=port, ui_url=ui_url)
            finally:
                server.should_exit = True
                thread.join()


def _run(server: uvicorn.Server, listening: Any) -> None:
    server.run(sockets=[listening])


def _endpoint(url: str) -> dict[str, str]:
    """As a shell that has the exports of a gateway, and for the rest a twin."""
    return {"AWS_ENDPOINT_URL": url, "AWS_ENDPOINT_URL_SAGEMAKER": "http://127.0.0.1:4600/a-token"}
