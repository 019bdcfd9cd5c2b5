"""Play a night of two teams, walk every page of the dashboard in Chromium, and record what it showed."""

from pathlib import Path

from trainmaster_client.report import Report

from demos.stage import command
from demos.dashboard.story import Options, tell

REPORT = Path("build/dashboard.json")


def main() -> int:
    parser = command.parser("python -m demos.dashboard", __doc__, report=REPORT)
    parser.add_argument("--keep", action="store_true", help="leave twin and dashboard up, and print a link")
    parser.add_argument("--images", type=Path, help="where reduced copies of the pictures go (docs/images)")
    arguments = parser.parse_args()
    options = Options(pictures=arguments.json.with_suffix(""), keep=arguments.keep, images=arguments.images)
    return command.play(
        lambda telling: tell(telling, options),
        command.Telling(report=Report(name=REPORT.stem), path=arguments.json),
    )


if __name__ == "__main__":
    raise SystemExit(main())
