"""What the functions read is what the template sets."""

from trainmaster.settings import Settings

from tests.template import stack
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
