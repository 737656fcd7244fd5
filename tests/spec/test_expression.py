import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.base.errors import ConfigError
from prony.spec.expression import check, evaluate, evaluate_whole, substitute

NAMES = {"conc": 4, "isl": 128, "osl": 32, "tp": 8}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("max(8, 4 * conc)", 16),
        ("isl + osl + 256", 416),
        ("(isl+osl) * conc // 3", 213),
        ("-conc - -2", -2),
        ("min(conc, tp, 3)", 3),
        ("+7", 7),
        (" conc ", 4),
    ],
)
def test_an_expression_over_point_fields_gives_an_integer(text: str, value: int) -> None:
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "conc ** 2",
        "conc / 2",
        "conc % 2",
        "1 if conc else 2",
        "True",
        "1.5",
        "'a'",
        "__import__('os')",
        "conc.real",
        "min()",
        "min(*conc)",
        "max(1, key=conc)",
        "abs(conc)",
        "[1]",
        "conc < 3",
        "lambda: 1",
        "(x := 3)",
        "",
        "1 +",
        "conc; conc",
        "1\x00",
    ],
)
def test_anything_but_integers_and_four_operators_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ConfigError) as error:
        evaluate(text, NAMES)
    assert "//" in error.value.allowed
    assert "conc, isl, osl, tp" in error.value.allowed


def test_an_unknown_name_is_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'concurrency' is not known here") as error:
        evaluate("4 * concurrency", NAMES)
    assert "conc, isl, osl, tp" in error.value.allowed


def test_division_by_zero_and_huge_results_are_the_authors_mistakes() -> None:
    with pytest.raises(ConfigError, match="division by zero"):
        evaluate("conc // (tp - 8)", NAMES)
    with pytest.raises(ConfigError, match="too large"):
        evaluate("9999999999 * 9999999999", NAMES)
    with pytest.raises(ConfigError, match="too large"):
        evaluate("min(1, " + "9" * 100 + ")", NAMES)


def test_an_expression_longer_than_a_line_is_refused() -> None:
    with pytest.raises(ConfigError, match="too long"):
        evaluate("1+" * 200 + "1", NAMES)


def test_every_hole_in_a_text_is_filled_and_the_rest_is_left_alone() -> None:
    assert (
        substitute("--len ${isl + osl} of $HOME {model_dir}/x ${conc}", NAMES) == "--len 160 of $HOME {model_dir}/x 4"
    )


@pytest.mark.parametrize("text", ["${conc", "${a{b}c}", "x ${ y"])
def test_a_hole_that_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not closed"):
        substitute(text, NAMES)


def test_a_whole_text_is_a_number_or_one_expression() -> None:
    assert evaluate_whole("12", NAMES) == 12
    assert evaluate_whole("${10 * conc}", NAMES) == 40
    for text in ("", "twelve", "1.5", "${conc} requests", "conc"):
        with pytest.raises(ConfigError, match="is not an integer"):
            evaluate_whole(text, NAMES)


def test_check_refuses_unknown_names_without_computing() -> None:
    check("${1 // 0} ${conc}", NAMES)
    with pytest.raises(ConfigError, match="'cnc'"):
        check("${cnc}", NAMES)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(1, 1000))
def test_expressions_agree_with_python(a: int, b: int, c: int) -> None:
    names = {"a": a, "b": b, "c": c}
    assert evaluate("max(a, b) * c - min(a, b, c) // c + 3", names) == max(a, b) * c - min(a, b, c) // c + 3


@given(st.text(max_size=300))
def test_no_text_gives_anything_but_an_integer_or_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(evaluate(text, NAMES), int)
