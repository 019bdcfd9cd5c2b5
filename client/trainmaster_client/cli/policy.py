"""``trainmaster policy show`` and ``policy apply FILE``."""

from typing import Annotated

import typer
import yaml

from trainmaster_client.api import field_problem
from trainmaster_client.cli.connection import connect
from trainmaster_client.cli.policy_file import parse_policy
from trainmaster_client.cli.screen import JsonFlag, print_json

app = typer.Typer(help="Show or replace the policy document.", no_args_is_help=True, rich_markup_mode=None)

PolicyFile = Annotated[
    typer.FileBinaryRead, typer.Argument(metavar="FILE", help="YAML or JSON; - reads standard input.")
]


@app.command()
def show(*, as_json: JsonFlag = False) -> None:
    """Print the policy in force as YAML, ready to be edited and applied again."""
    document = connect().policy()
    if as_json:
        print_json(document)
        return
    paused = ", paused: nothing starts" if document.get("paused") else ""
    print(f"# revision {document.get('revision')}{paused}")
    print(yaml.safe_dump(document.get("policy"), sort_keys=False), end="")


@app.command()
def apply(file: PolicyFile, *, as_json: JsonFlag = False) -> None:
    """Check a policy document and put it in force; when refused, the old one stays."""
    document = connect().put_policy(parse_policy(file.read(), source=file.name))
    if as_json:
        print_json(document)
        return
    print(f"Policy revision {document.get('revision')} is in force.")
    for warning in document.get("warnings") or ():
        print(f"Warning: {field_problem(warning)}")
