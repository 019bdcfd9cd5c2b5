"""CSV for spreadsheets: what is not a number is never computed."""

import csv
import io

import pytest
from trainmaster_client.cli.csv_output import harmless, print_csv


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", " =1", "\r=1"])
def test_text_that_begins_as_a_formula_gets_an_apostrophe(text: str) -> None:
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("cell", ["job-1", "1", "", None, -1, 2.5])
def test_other_cells_stay_as_they_are(cell: str | float | None) -> None:
    assert harmless(cell) == cell


def test_commas_quotes_and_line_ends_stay_in_their_cell() -> None:
    out = io.StringIO()
    print_csv(["job", "reason"], [['a,"b"', "two\nlines"], ["c", None]], to=out)
    assert list(csv.reader(io.StringIO(out.getvalue()))) == [
        ["job", "reason"],
        ['a,"b"', "two\nlines"],
        ["c", ""],
    ]
