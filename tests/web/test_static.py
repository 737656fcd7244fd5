"""What can be said of the page's files without a browser."""

import json
import re

import pytest

from prony.web import assets
from prony.web.assets import STATIC

LIGHT, DARK = ":root {", ':root[data-theme="dark"] {'


def strings() -> dict[str, dict[str, str]]:
    text = assets.text("strings.js")
    found: dict[str, dict[str, str]] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return found


def test_every_string_is_there_in_both_languages_with_the_same_values() -> None:
    for key, told in strings().items():
        assert sorted(told) == ["en", "zh"], key
        assert all(told.values()), key
        assert sorted(re.findall(r"\{\w+\}", told["en"])) == sorted(re.findall(r"\{\w+\}", told["zh"])), key


def test_every_string_that_the_code_asks_for_exists_and_none_is_left_over() -> None:
    code = "\n".join(assets.text(name) for name in assets.MODULES if name != "strings.js")
    known = set(strings())
    literal = set(re.findall(r'\bt\(\s*"([^"]+)"', code))
    either = {key for key in re.findall(r'"([a-z_]+\.[a-z_.0-9]+)"', code) if key in known}
    families = set(re.findall(r"\bt\(\s*`([a-z]+)\.\$\{", code))
    assert literal <= known
    assert {key for key in known if key not in literal | either and key.split(".")[0] not in families} == set()


def test_strings_reach_the_page_as_text_only() -> None:
    code = "\n".join(assets.text(name) for name in assets.MODULES)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|\.html\(", code)


def colours(opening: str) -> dict[str, str]:
    css = assets.text("style.css")
    block = css[css.index(opening) : css.index("}", css.index(opening))]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_marks_stand_out_from_the_ground_and_text_can_be_read(theme: str) -> None:
    found = colours(theme)
    for name, colour in found.items():
        if name.startswith("sku-"):
            assert contrast(colour, found["ground"]) >= 3, name
    for name in ("ink", "quiet", "accent", "bad", "warn", "good"):
        assert contrast(found[name], found["ground"]) >= 4.5, name
        assert contrast(found[name], found["panel"]) >= 4.5, name


def test_the_dark_theme_is_the_same_by_preference_and_by_choice() -> None:
    assert colours(DARK) == colours(':root:not([data-theme="light"]) {')
    assert set(colours(LIGHT)) == set(colours(DARK))


def test_every_sku_family_has_a_colour() -> None:
    from prony.view.words import FAMILIES

    css = (STATIC / "style.css").read_text()
    for family in (*FAMILIES, "other"):
        assert f".sku-{family} {{" in css
