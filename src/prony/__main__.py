"""Run the command line: `python -m prony`."""

from prony.cli.main import main

raise SystemExit(main())
