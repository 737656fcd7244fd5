"""A sweep controller as a process of its own, for tests that kill it: controller.py DIR new|resume DELAY OPTIONS..."""

import sys
from pathlib import Path

from prony.base.clock import SystemClock
from prony.base.errors import PronyError
from prony.run.executors.local import LocalExecutor
from prony.run.sweep import Sweep, drive
from tests.run.kit import make_deployment, make_launches


def main() -> int:
    directory, how, *options = sys.argv[1:]
    launches = make_launches(make_deployment(*options), 1, 2, 4)
    try:
        make = Sweep.create if how == "new" else Sweep.open
        with make(Path(directory), launches) as sweep:
            return drive(sweep, LocalExecutor(), SystemClock(), lambda _: None, every_s=0.05)
    except PronyError as error:
        print(f"prony: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
