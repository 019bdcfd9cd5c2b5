"""``python -m local up``."""

import sys

from local import up


def main() -> int:
    match sys.argv[1:]:
        case ["up", *arguments]:
            return up.main(arguments)
        case _:
            print("usage: python -m local up [options]; python -m local up --help", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
