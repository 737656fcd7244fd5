"""The page in a real browser, served and from disk."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import pytest
from playwright.sync_api import Browser, Page, expect

from prony.store.store import Selection
from prony.web.report import write_report
from tests.web.conftest import NOW

PUBLISHED = "#model=dsr1"
SIZES = (1280, 400)


class Box(TypedDict):
    left: float
    right: float
    top: float
    bottom: float
    text: str


@pytest.fixture(params=["served", "report"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """The same page by both ways in."""
    yield request.getfixturevalue("server" if request.param == "served" else "report")


def opened(page: Page, address: str, state: str = "") -> Page:
    page.goto(address + state)
    page.get_by_test_id("point").first.wait_for()
    return page


def boxes(page: Page, selector: str) -> list[Box]:
    found: list[Box] = page.eval_on_selector_all(
        selector,
        "nodes => nodes.map(n => { const b = n.getBoundingClientRect(); return "
        "{left: b.left, right: b.right, top: b.top, bottom: b.bottom, text: n.textContent} })",
    )
    return [box for box in found if box["right"] > box["left"]]


def overlapping(found: list[Box]) -> list[tuple[str, str]]:
    return [
        (a["text"], b["text"])
        for a, b in itertools.combinations(found, 2)
        if min(a["right"], b["right"]) - max(a["left"], b["left"]) > 1
        and min(a["bottom"], b["bottom"]) - max(a["top"], b["top"]) > 1
    ]


def page_is_as_wide_as_the_window(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_it_opens_on_the_local_measurement(page: Page, address: str) -> None:
    opened(page, address)
    expect(page.get_by_test_id("model")).to_have_value("HuggingFaceTB/SmolLM2-135M-Instruct")
    expect(page.locator("figure")).to_have_count(2)
    expect(page.get_by_test_id("lines").locator("tbody tr").first).to_contain_text("measured here")


def test_clicking_a_point_opens_all_that_is_known_of_it(page: Page, address: str) -> None:
    opened(page, address)
    page.locator("[data-testid=point][aria-label*=' · 1 concurrent']").first.click()
    card = page.get_by_role("dialog")
    expect(card).to_be_visible()
    expect(card.get_by_role("heading", level=2)).to_contain_text("CPU · llama.cpp · Q4")
    expect(card.get_by_test_id("measurements")).to_contain_text("tok/s/user")
    for fact in ("Example CPU", "CLOCK_MONOTONIC", "llamacpp-cpu", "b7000", "examples/local/master.yaml"):
        expect(card.get_by_test_id("provenance")).to_contain_text(fact)
    expect(card).to_contain_text("mean of 2 repeats")
    assert "point=" in page.url


def test_the_link_to_a_point_opens_its_card(page: Page, server: str) -> None:
    opened(page, server)
    page.get_by_test_id("point").first.click()
    title = page.locator("#details-title").inner_text()
    link = page.url
    page.goto("about:blank")
    opened(page, link)
    expect(page.locator("#details-title")).to_have_text(title)


def test_escape_closes_the_card(page: Page, server: str) -> None:
    opened(page, server)
    page.get_by_test_id("point").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.wait_for_function("!location.hash.includes('point=')")


def test_an_invalid_row_shows_its_verdict(page: Page, server: str) -> None:
    opened(page, server)
    page.get_by_test_id("data").locator("tr.not-valid").first.click()
    verdicts = page.get_by_test_id("verdicts")
    expect(verdicts).to_contain_text("not valid · littles-law")
    expect(verdicts).to_contain_text("What to do: measure again")
    expect(page.locator(".chart .flag").first).to_have_text("!")


def test_arrow_keys_walk_along_a_line_and_between_lines(page: Page, address: str) -> None:
    opened(page, address)
    first = page.locator("[data-testid=point][tabindex='0']").first
    first.focus()
    label = "document.activeElement.getAttribute('aria-label')"
    start = page.evaluate(label)
    page.keyboard.press("ArrowRight")
    along = page.evaluate(label)
    assert along != start
    assert along.rsplit(" · ", 1)[0] == start.rsplit(" · ", 1)[0]
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(label) == start
    page.keyboard.press("ArrowDown")
    assert page.evaluate(label).rsplit(" · ", 1)[0] != start.rsplit(" · ", 1)[0]
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_every_choice_can_be_reached_by_tab(page: Page, server: str) -> None:
    opened(page, server)
    reached = []
    for _ in range(15):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.testid"))
    choices = {"model", "workload", "language", "theme", "axis-metric", "axis-latency", "scale-y-log", "scale-x-log"}
    assert choices | {"point"} <= set(reached)


def test_the_language_changes_every_word_and_is_in_the_link(page: Page, server: str) -> None:
    opened(page, server)
    page.get_by_test_id("language").select_option("zh")
    expect(page.locator("figcaption").first).to_have_text("每 GPU 吞吐 与 交互速度（中位数）")
    expect(page.get_by_test_id("lines")).to_contain_text("本机实测")
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    assert "lang=zh" in page.url
    page.get_by_test_id("data").locator("tbody tr").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("来源信息")


def test_model_workload_and_scale_are_kept_in_the_link(page: Page, address: str) -> None:
    opened(page, address)
    page.get_by_test_id("model").select_option(label="dsr1")
    page.get_by_test_id("workload").select_option("fixed-seq-len-8192-1024")
    page.get_by_test_id("scale-x-log").click()
    expect(page.get_by_test_id("scale-x-log")).to_have_attribute("aria-pressed", "true")
    link = page.url
    page.goto("about:blank")
    opened(page, link)
    expect(page.get_by_test_id("workload")).to_have_value("fixed-seq-len-8192-1024")
    expect(page.get_by_test_id("scale-x-log")).to_have_attribute("aria-pressed", "true")


def test_a_link_to_a_model_that_is_gone_says_what_it_shows_instead(page: Page, server: str) -> None:
    opened(page, server, "#model=gone")
    expect(page.get_by_role("alert")).to_contain_text("“gone”, which is not in this store")


def test_twelve_lines_at_first_and_the_rest_on_demand(page: Page, server: str) -> None:
    opened(page, server, PUBLISHED)
    expect(page.locator("figure").first.get_by_test_id("series")).to_have_count(12)
    page.get_by_test_id("more").click()
    shown = page.locator("figure").first.get_by_test_id("series")
    expect(shown).not_to_have_count(12)
    assert shown.count() > 50
    page.get_by_test_id("fewer").click()
    expect(shown).to_have_count(12)


def test_a_line_can_be_hidden_and_shown(page: Page, server: str) -> None:
    opened(page, server, PUBLISHED)
    series = page.locator("figure").first.get_by_test_id("series")
    page.get_by_test_id("lines").get_by_role("checkbox").first.uncheck()
    expect(series).to_have_count(11)
    page.get_by_test_id("lines").get_by_role("checkbox").first.check()
    expect(series).to_have_count(12)


def test_tables_sort_by_value_and_keep_what_is_not_measured_last(page: Page, server: str) -> None:
    opened(page, server, PUBLISHED)
    data = page.get_by_test_id("data")
    head = data.get_by_role("button", name="Throughput per GPU", exact=True)
    index = data.locator("thead th").evaluate_all(
        "(all) => all.findIndex(n => n.innerText.trim() === 'Throughput per GPU')"
    )
    head.click()
    expect(data.locator("th[aria-sort=descending]")).to_have_count(1)
    texts = data.locator(f"tbody tr td:nth-child({index + 1})").all_inner_texts()
    numbers = [float(re.sub(r"[^\d.]", "", text.split("tok")[0])) for text in texts if "tok" in text]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) > 100


def test_the_table_shows_the_chart_s_numbers_with_units(page: Page, server: str) -> None:
    opened(page, server)
    label = page.locator("[data-testid=point]:not(.hollow)").last.get_attribute("aria-label") or ""
    assert re.search(r"[\d.]+ (ms|s), [\d\u2009.]+ tok/s/GPU$", label)
    cells = page.get_by_test_id("data").locator("tbody tr").first.locator("td").all_inner_texts()
    assert any(cell.endswith("tok/s/GPU") for cell in cells) and any(cell.endswith(" ms") for cell in cells)


def test_csv_can_be_saved(page: Page, address: str, tmp_path: Path) -> None:
    opened(page, address)
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download CSV").click()
    saved.value.save_as(tmp_path / "prony.csv")
    header, *lines = (tmp_path / "prony.csv").read_text().splitlines()
    assert "tput_per_gpu (tok/s/GPU)" in header
    assert len(lines) >= 14


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("state", ["", PUBLISHED, PUBLISHED + "&more=1", "#lang=zh"])
def test_nothing_overlaps_or_runs_out_of_the_page(page: Page, server: str, width: int, state: str) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, server, state)
    assert page_is_as_wide_as_the_window(page)
    for chart in range(2):
        texts = boxes(page, f"figure:nth-of-type({chart + 1}) svg text:not(.flag)")
        assert overlapping(texts) == []
        labels_and_flags = [
            (label, flag)
            for label in boxes(page, f"figure:nth-of-type({chart + 1}) svg .label")
            for flag in boxes(page, f"figure:nth-of-type({chart + 1}) svg .flag")
        ]
        assert [pair for pair in labels_and_flags if overlapping(list(pair))] == []
    controls = boxes(page, "header select, header h1, .controls button, figcaption, section > h2")
    assert overlapping(controls) == []
    labels = page.locator("figure").first.get_by_test_id("label")
    assert labels.count() >= min(10, page.locator("figure").first.get_by_test_id("series").count())


@pytest.mark.parametrize("width", SIZES)
def test_the_card_fits_the_window(page: Page, server: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    opened(page, server)
    page.get_by_test_id("data").locator("tbody tr").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    (card,) = boxes(page, "dialog")
    assert card["left"] >= 0 and card["right"] <= width and card["bottom"] <= 801
    assert page_is_as_wide_as_the_window(page)
    assert page.evaluate("document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').clientWidth")


def test_other_metrics_can_be_chosen_and_are_in_the_link(page: Page, server: str) -> None:
    opened(page, server, PUBLISHED)
    page.get_by_test_id("axis-metric").select_option("output_tput_per_gpu")
    page.get_by_test_id("axis-stat").select_option("p99")
    page.get_by_test_id("axis-latency").select_option("ttft")
    titles = page.locator("figcaption")
    expect(titles.nth(0)).to_have_text("Output throughput per GPU against Interactivity (p99)")
    expect(titles.nth(1)).to_have_text("Output throughput per GPU against Time to first token (p99)")
    link = page.url
    page.goto("about:blank")
    opened(page, link)
    expect(titles.nth(1)).to_have_text("Output throughput per GPU against Time to first token (p99)")


def test_a_report_offers_only_the_axes_it_holds(page: Page, report: str) -> None:
    opened(page, report, "#metric=output_tput_per_gpu")
    expect(page.get_by_test_id("axis-metric")).to_have_count(0)
    expect(page.locator("figcaption").first).to_contain_text("Throughput per GPU against")


def test_points_say_their_concurrency_on_the_line_that_is_looked_at(page: Page, server: str) -> None:
    opened(page, server, PUBLISHED)
    seen = page.locator("figure").first.locator(".concurrency:visible text")
    expect(seen).to_have_count(0)
    page.get_by_test_id("lines").locator("tbody tr").first.hover()
    expect(seen.first).to_have_text(re.compile(r"^\d+$"))


def test_a_table_that_is_cut_shows_that_it_scrolls(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1000, "height": 800})
    opened(page, server, PUBLISHED)
    box = page.locator(".scroller", has=page.get_by_test_id("data"))
    expect(box).to_have_class(re.compile("more-right"))
    box.locator(".scroll").evaluate("n => n.scrollTo(n.scrollWidth, 0)")
    expect(box).to_have_class(re.compile("more-left"))
    expect(box).not_to_have_class(re.compile("more-right"))


def test_in_chinese_names_hold_no_english_words(page: Page, server: str) -> None:
    opened(page, server, PUBLISHED + "&lang=zh")
    words = re.compile(r"concurrent|none|draft|disagg|simulated|prefill|decode")
    labels = page.locator("[aria-label]").evaluate_all("all => all.map(n => n.getAttribute('aria-label'))")
    told = " ".join([*labels, page.locator("#view").inner_text()])
    assert not words.findall(told)


def test_percentiles_without_enough_observations_have_a_star(page: Page, server: str) -> None:
    opened(page, server, "#lang=en")
    page.get_by_test_id("data").locator("tbody tr").first.click()
    expect(page.get_by_test_id("measurements")).to_contain_text("ms*")


def test_charts_fit_again_after_the_window_changes(page: Page, server: str) -> None:
    opened(page, server, PUBLISHED)
    page.set_viewport_size({"width": 400, "height": 800})
    expect(page.get_by_test_id("label").first).to_have_text(re.compile(r"^\d+$"))
    assert page_is_as_wide_as_the_window(page)


def test_names_from_artifacts_stay_text(page: Page, address: str) -> None:
    opened(page, address)
    page.get_by_test_id("data").locator("tbody tr", has_text="32").last.click()
    expect(page.get_by_test_id("provenance")).to_contain_text("<img src=x onerror=window.broken=1>")
    assert page.evaluate("window.broken") is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_follows_preference_and_choice(page: Page, server: str, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "light" else "light")
    opened(page, server)
    ground = "getComputedStyle(document.body).backgroundColor"
    preferred = page.evaluate(ground)
    page.get_by_test_id("theme").select_option(theme)
    assert page.evaluate(ground) != preferred


def test_the_report_opens_from_disk_without_a_network(browser: Browser, report: str) -> None:
    context = browser.new_context(offline=True)
    asked: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url.split(":")[0]))
    opened(page, report)
    page.get_by_test_id("point").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    context.close()
    assert set(asked) <= {"file", "data", "blob"}


def test_an_empty_report_says_why_and_what_to_type(page: Page, tmp_path: Path) -> None:
    write_report(Selection((), ()), tmp_path / "empty.html", "Prony", NOW)
    page.goto((tmp_path / "empty.html").as_uri())
    expect(page.get_by_test_id("empty")).to_contain_text("prony run CONFIG")
    expect(page.get_by_test_id("empty")).to_contain_text("store without rows")


def test_a_server_that_went_away_leaves_the_picture_and_says_what_to_do(browser: Browser, server: str) -> None:
    context = browser.new_context()
    page = opened(context.new_page(), server)
    context.set_offline(True)
    page.get_by_test_id("workload").evaluate("n => n.dispatchEvent(new Event('change'))")
    page.get_by_test_id("model").select_option(label="dsr1")
    expect(page.get_by_role("alert")).to_contain_text("prony serve")
    expect(page.get_by_test_id("point").first).to_be_visible()
    context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(page.locator("figure").first.get_by_test_id("series")).to_have_count(12)
    context.close()
