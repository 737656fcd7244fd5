"""A cell of a curve: counts per prompt, an interval that covers, a file that grows."""

from pathlib import Path

import numpy as np
import pytest

from prony.base.errors import ConfigError, MeasurementError
from prony.base.yamldoc import load_yaml
from prony.facts.curves import Cell, read_curve
from prony.load.acceptance import Collection, _between, _Counted, cell_of, collect_cell, read_prompts
from prony.load.curvefile import add_cell
from prony.load.engine import Counters
from tests.load.test_wire import Serve

ASKED = Collection(url="http://h:1", model="m", steps=3, thinking="on", output_tokens=16)


def prompt(generator: np.random.Generator) -> _Counted:
    """A prompt of 40 drafts whose own difficulty is shared by all of them."""
    ease = generator.beta(6, 3)
    at = np.cumprod(generator.random((40, 3)) < ease, axis=1).sum(axis=0)
    return _Counted(40, tuple(int(count) for count in at))


def test_the_interval_covers_the_true_length_though_drafts_of_a_prompt_are_alike() -> None:
    generator = np.random.default_rng(7)
    many = [prompt(generator) for _ in range(40_000)]
    truth = 1 + sum(sum(one.accepted_at) for one in many) / sum(one.drafts for one in many)
    covered = 0
    for number in range(200):
        cell = cell_of(many[number * 80 : number * 80 + 80], ASKED)
        assert cell.ci95 is not None
        covered += cell.ci95[0] <= truth <= cell.ci95[1]
    assert 182 <= covered <= 198


def test_counters_of_another_draft_length_are_refused() -> None:
    before, after = (
        Counters(drafts=10, accepted=5, accepted_at={0: 5}),
        Counters(drafts=20, accepted=25, accepted_at={0: 10, 1: 8, 2: 5, 3: 2}),
    )
    with pytest.raises(MeasurementError, match="accepted at position 4 of a draft, 3 are drafted"):
        _between(before, after, 3)
    assert _between(before, after, 4) == _Counted(10, (5, 8, 5, 2))
    with pytest.raises(MeasurementError, match="no draft was verified"):
        cell_of([_Counted(0, (0, 0, 0))] * 2, ASKED)


def test_an_engine_that_does_not_draft_is_told(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    quiet = serve(lambda connection, _: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na 1.0"))
    asked = Collection(url=quiet.url, model="m", steps=3, thinking="on", output_tokens=4)
    with pytest.raises(MeasurementError, match="tells nothing of drafts"):
        collect_cell(asked, tmp_path / "p.jsonl", lambda *_: None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "0 prompts"),
        ('{"prompt": "a"}\n', "1 prompts"),
        ('{"prompt": "a"}\n{oops\n', "p.jsonl:2: no JSON"),
        ('{"prompt": "a"}\n{"text": "b"}\n', "p.jsonl:2: neither prompt nor messages"),
    ],
)
def test_a_file_of_prompts_that_holds_none_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "p.jsonl").write_text(text)
    with pytest.raises(ConfigError, match=reason):
        read_prompts(tmp_path / "p.jsonl")


def cell(steps: int, per_position: tuple[int, ...], low: float = 0.0, high: float = 9.0) -> Cell:
    return Cell(thinking="on", steps=steps, drafts=1000, accepted_at=per_position, prompts=8, ci95=(low, high))


def test_a_curve_grows_cell_by_cell_and_says_what_is_odd(tmp_path: Path) -> None:
    file = tmp_path / "acceptance" / "m.yaml"
    assert add_cell(file, cell(1, (800,), 1.79, 1.81), "org/m", "mtp", "self") == ()
    assert add_cell(file, cell(3, (800, 600, 400), 2.7, 2.9), "org/m", "mtp", "self") == ()
    notes = add_cell(file, cell(4, (800, 500, 200, 100), 2.5, 2.75), "org/m", "mtp", "self")
    assert "falls from 2.8 at 3 to 2.6 at 4" in notes[0] and "cannot be told apart" in notes[1]
    curve = read_curve(load_yaml(file))
    assert curve.thinking_on == {1: 1.8, 3: 2.8, 4: 2.6} and len(curve.raw) == 3
    add_cell(file, cell(4, (800, 700, 300, 200), 2.95, 3.05), "org/m", "mtp", "self")
    assert read_curve(load_yaml(file)).thinking_on[4] == 3.0
    with pytest.raises(ConfigError, match="is the curve of org/m with mtp by self"):
        add_cell(file, cell(1, (1,)), "org/m", "eagle3", "self")
