"""Filters as people type them: any case, names as tables show them, a part of a model's name."""

import argparse
from collections.abc import Iterable

from prony.base.errors import ConfigError
from prony.measure.result import Row
from prony.store.store import RowFilter
from prony.view.words import framework_label

_MOST_TOLD = 40


def row_filter(arguments: argparse.Namespace, rows: Iterable[Row]) -> RowFilter:
    """Return what was asked for in the words of the results at hand. Raises ConfigError for a value that none has."""
    rows = tuple(rows)
    known = sorted({row.concurrency for row in rows})
    for number in arguments.conc:
        if number not in known:
            raise _none("conc", str(number), [str(one) for one in known])
    return RowFilter(
        model=tuple(_model(text, rows) for text in arguments.model),
        hardware=tuple(_value("hardware", text, rows) for text in arguments.hardware),
        framework=tuple(_value("framework", text, rows) for text in arguments.framework),
        precision=tuple(_value("precision", text, rows) for text in arguments.precision),
        concurrency=tuple(arguments.conc),
        valid_only=arguments.valid,
    )


def _value(name: str, text: str, rows: Iterable[Row]) -> str:
    known = sorted({str(getattr(row, name)) for row in rows})
    asked = text.casefold()
    same = [one for one in known if one == text] or [
        one for one in known if asked in (one.casefold(), framework_label(one).casefold())
    ]
    if not same:
        raise _none(name, text, known)
    return same[0]


def _model(text: str, rows: Iterable[Row]) -> str:
    """Return a model's id or prefix: as given, else in another case, else the only id that has the text in it."""
    names = sorted({(row.model, row.model_prefix) for row in rows})
    asked = text.casefold()
    for same in (str, str.casefold):
        for name in (one for pair in names for one in pair):
            if same(name) == same(text):
                return name
    for fits in (str.startswith, str.__contains__):
        found = sorted({model for model, prefix in names if any(fits(n.casefold(), asked) for n in (model, prefix))})
        if len(found) == 1:
            return found[0]
        if found:
            raise ConfigError(
                f"--model: '{text}' fits {len(found)} models", allowed=_told(found), fix="give more of the name"
            )
    raise _none("model", text, sorted({model for model, _ in names}))


def _none(name: str, text: str, known: list[str]) -> ConfigError:
    from difflib import get_close_matches

    by_fold = {one.casefold(): one for one in known}
    near = get_close_matches(text.casefold(), by_fold, n=1, cutoff=0.5)
    return ConfigError(
        f"--{name}: no result has '{text}'",
        allowed=_told(known),
        fix=f"did you mean {by_fold[near[0]]}?" if near else "give one of those, or leave the filter out",
    )


def _told(known: list[str]) -> str:
    more = f" … ({len(known)} in all)" if len(known) > _MOST_TOLD else ""
    return ", ".join(known[:_MOST_TOLD]) + more
