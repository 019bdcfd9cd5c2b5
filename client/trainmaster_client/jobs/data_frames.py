"""Records as a pandas DataFrame, where pandas is installed; it is never needed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainmaster_client.errors import InvalidArgumentError


def data_frame(
    records: Iterable[Mapping[str, Any]], *, columns: Sequence[str] | None = None, numbers: Iterable[str] = ()
) -> Any:  # noqa: ANN401  pandas is imported when asked for
    """Make a DataFrame with a row per record.

    Args:
        records: Mappings with the same names.
        columns: Their order; None: as in the first record.
        numbers: Columns of text that become numbers where all their texts are numbers.

    Raises:
        InvalidArgumentError: pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415  large, and only where it is asked for
    except ImportError as error:
        raise InvalidArgumentError(
            "to_frame() needs pandas, which is not installed.", hint="Run: pip install pandas"
        ) from error
    frame = pd.DataFrame(list(records), columns=columns)
    for column in numbers:
        parsed = pd.to_numeric(frame[column], errors="coerce")
        if not (parsed.isna() & frame[column].notna()).any():
            frame[column] = parsed
    return frame
