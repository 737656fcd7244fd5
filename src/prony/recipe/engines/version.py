"""The one line in which a server that Prony starts says what it is."""

PREFIX = "engine version: "


def announce(version: str) -> str:
    """Return the line that a server prints first."""
    return PREFIX + version


def find(log: str) -> str | None:
    """Return the version announced in a log, or None."""
    for line in log.splitlines():
        if line.startswith(PREFIX):
            return line.removeprefix(PREFIX).strip()
    return None
