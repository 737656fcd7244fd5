"""Tables that fit a terminal: a narrow one gets shorter names and fewer columns, never torn numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from prony.cli.console import make_console, shown

_GAP = 2
Cell = str | Text


@dataclass(frozen=True)
class Column:
    """One column. drop: the highest goes first when room is short, 0 never; least: may be cut in the middle to that
    width; wraps: may be folded at spaces instead."""

    head: str
    right: bool = False
    drop: int = 0
    least: int = 0
    wraps: bool = False


def print_table(columns: Sequence[Column], lines: Sequence[Sequence[Cell]]) -> None:
    """Print lines of cells, and below them which columns had no room."""
    console = make_console()
    texts = [[_text(cell) for cell in line] for line in lines]
    natural = [
        max([*map(cell_len, column.head.split("\n")), *(cell_len(line[index].plain) for line in texts)])
        for index, column in enumerate(columns)
    ]
    same = [len(texts) > 1 and len({line[index].plain for line in texts}) == 1 for index in range(len(columns))]
    kept = _kept(columns, natural, same, console.width)
    widths = _widths(columns, natural, kept, console.width)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for index in kept:
        column = columns[index]
        cells = [line[index] for line in texts]
        fold = column.wraps or not _shorten(cells, widths[index])
        table.add_column(
            column.head,
            justify="right" if column.right else "left",
            no_wrap=not fold,
            overflow="fold" if fold else "ellipsis",
            max_width=widths[index],
        )
    for line in texts:
        table.add_row(*(line[index] for index in kept))
    console.print(table)
    if len(kept) < len(columns):
        heads = [(index, column.head.split("\n")[0]) for index, column in enumerate(columns) if index not in kept]
        equal = [f"{head} {texts[0][index].plain}" for index, head in heads if same[index]]
        left_out = [head for index, head in heads if not same[index]]
        for told, names in (("in every line", equal), ("no room for", left_out)):
            if names:
                console.print(f"{told}: {', '.join(names)}", style="dim")


def _text(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(shown(cell).replace("\n", " "))


def _kept(columns: Sequence[Column], natural: Sequence[int], same: Sequence[bool], width: int) -> list[int]:
    """Drop columns until the rest fits with its names cut as far as they may be: first those that say the same in
    every line, then by rank."""
    kept = list(range(len(columns)))

    def needed() -> int:
        least = (min(natural[index], columns[index].least or natural[index]) for index in kept)
        return sum(least) + _GAP * (len(kept) - 1)

    ranked = sorted((index for index in kept if columns[index].drop), key=lambda one: (same[one], columns[one].drop))
    while needed() > width and ranked:
        kept.remove(ranked.pop())
    return kept


def _widths(columns: Sequence[Column], natural: Sequence[int], kept: Sequence[int], width: int) -> dict[int, int]:
    """Take what is too wide from the widest columns that may be cut."""
    widths = {index: natural[index] for index in kept}
    while sum(widths.values()) + _GAP * (len(kept) - 1) > width:
        elastic = [index for index in kept if columns[index].least and widths[index] > columns[index].least]
        if not elastic:
            break
        widths[max(elastic, key=widths.__getitem__)] -= 1
    return widths


def _shorten(cells: Sequence[Text], width: int) -> bool:
    """Cut texts in their middle to a width; False, and nothing is cut, where different ones would look the same."""
    short = {cell.plain: _middle(cell.plain, width) for cell in cells}
    if len(set(short.values())) < len(short):
        return False
    for cell in cells:
        if short[cell.plain] != cell.plain:
            cell.plain = short[cell.plain]
    return True


def _middle(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[head + 1 - width :]}"
