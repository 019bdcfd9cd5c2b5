"""What the code reads and serves is what the template sets and routes."""

from typing import Any

from trainmaster.api import router
from trainmaster.settings import Settings

from tests.template import stack
from tests.template.api import routes
from tests.template.functions import FUNCTIONS
from tests.template.stack import of_type


class Recorded(dict[str, str]):
    """An environment that remembers what was asked of it."""

    def __init__(self, content: dict[str, str]) -> None:
        super().__init__(content)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return super().__getitem__(name)


def test_every_function_is_given_exactly_what_the_settings_read():
    functions = of_type(stack.resources(), "AWS::Lambda::Function")
    assert functions.keys() == FUNCTIONS.keys()
    for function in functions.values():
        given = {name: str(value) for name, value in function["Environment"]["Variables"].items()}
        environment = Recorded(given)
        settings = Settings.from_env(environment)
        assert environment.read == {name for name in given if name.startswith("TRAINMASTER_")}
        assert settings.admin_principal_arns == tuple(stack.PARAMETERS["AdminPrincipalArns"])
        assert settings.retention_days == stack.parameters()["RetentionDays"]


def test_the_api_serves_exactly_the_routes_that_lead_to_it():
    nothing: Any = None  # the routes are there before anything is asked of the outside
    resolver = router.routes(nothing)
    served = {
        (route.method, route.path.replace("<", "{").replace(">", "}"))
        for route in (*resolver._static_routes, *resolver._dynamic_routes)
    }
    assert served == routes(stack.resources())
