"""A dataclass among a command's parameters is its options; the command line and its help do not show it."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from trainmaster_client.cli.command_options import with_options
from typer.testing import CliRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    row: Annotated[int, typer.Option(min=1, help="From the front.")]
    seat: str = "window"


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer(rich_markup_mode=None)

    @made.command()
    @with_options
    def book(name: str, *, place: Place, loud: bool = False) -> None:
        """Book a place."""
        typer.echo(f"{name} {place} {loud}")

    return made


def test_each_field_is_an_option_and_the_command_gets_the_value(app: typer.Typer) -> None:
    ran = CliRunner().invoke(app, ["ada", "--row", "3", "--loud"])
    assert ran.stdout == "ada Place(row=3, seat='window') True\n"


def test_a_field_without_a_default_is_required_and_its_limits_count(app: typer.Typer) -> None:
    assert "Missing option '--row'" in CliRunner().invoke(app, ["ada"]).output
    assert CliRunner().invoke(app, ["ada", "--row", "0"]).exit_code == 2


def test_help_shows_the_fields_where_the_dataclass_stands(app: typer.Typer) -> None:
    words = CliRunner().invoke(app, ["--help"]).stdout
    assert "Book a place." in words
    assert words.index("--row") < words.index("--seat") < words.index("--loud")
    assert "From the front." in words
    assert "--place" not in words
