"""Numbers for people: three significant digits, SI prefixes, units always shown."""

import math

THIN_SPACE = "\u2009"
# Beyond these a number is written with a power of ten: nothing measured is that big or small.
_LARGE, _SMALL = 1e15, 1e-9


def significant(value: float | None, digits: int = 3) -> str:
    """Write a number with significant digits and thin-space thousands; None is an em dash."""
    if value is None:
        return "—"
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if not _SMALL <= abs(value) < _LARGE:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}".replace(",", THIN_SPACE)


def duration(seconds: float | None) -> str:
    """Write a duration in the unit that fits: 812 µs, 27.0 ms, 1.45 s, 3 min 12 s, 2 h 05 min."""
    if seconds is None:
        return "—"
    if not -_LARGE < seconds < _LARGE:
        return f"{significant(seconds)} s"
    if seconds < 1e-3:
        return f"{significant(seconds * 1e6)} µs"
    if seconds < 1:
        return f"{significant(seconds * 1e3)} ms"
    if seconds < 60:
        return f"{significant(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def about(seconds: float) -> str:
    """Write a rough duration, as an estimate deserves: 40 s, 3 min, 2 h 05 min."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def counted(number: int, noun: str) -> str:
    """Write a number of things: 1 point, 3 points."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
