"""The page of a plan: self-contained, complete, escaped; and drawn by a real browser in light, dark and print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zlib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from planner.answer.comparison import Row
from planner.answer.schema import Plan, to_json
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.render.report.charts import rows_by_days_and_cost, ticks
from planner.render.report.page import report
from planner.render.tables import render_answer_line
from tests.answered import shipped_answer
from tests.asked import load_scenario

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: install the system's package chromium")
SECTIONS = {"plan", "memory", "time", "purchase", "rent-or-buy", "trades", "alternatives", "runs", "topology", "proof",
            "sources"}


@cache
def plan(**changes: str) -> Plan:
    asked = {"workload.model": "llama-3.1-8b", "workload.tokens": "2 T", "workload.stack": "megatron-core",
             "hardware.candidates": "dgx-h100",
             "limits.deadline": "300 d", "sourcing.buy.utilization": "0.8", "sourcing.rent.providers": "nebius"}
    scenario, defaults = load_scenario(None, asked | {k.replace("__", "."): v for k, v in changes.items()}, Catalog())
    return make_plan(scenario, Catalog(), defaults=defaults)


def test_a_comparison_is_drawn_with_a_line_along_what_nothing_beats_in_both():
    rows = [Row(node=f"n{at}", gpu="<g>", kind="rent", status="optimal", gpus=8, duration_days=days, cost_usd=usd)
            for at, (days, usd) in enumerate([(4, 100.0), (1, 400.0), (2, 200.0), (2, 300.0), (3, 250.0)])]
    drawn = rows_by_days_and_cost(rows)
    assert drawn is not None
    assert "<g>" not in drawn
    assert drawn.count('<circle') == 5
    assert drawn.count('fill="var(--b)"><title>') == 3
    (line,) = re.findall(r'<polyline points="([^"]*)"', drawn)
    assert len(line.split()) == 5, "three corners, and two steps between them"
    assert re.findall(r'middle">([0-9.,]+)</text>', drawn) == ["0", "1", "2", "3", "4"]
    far = rows_by_days_and_cost([*rows, rows[0].model_copy(update={"duration_days": 4000.0})])
    assert far is not None
    assert re.findall(r'middle">([0-9.,]+)</text>', far) == ["1", "10", "100", "1,000"], "by factors"
    assert len(set(re.findall(r'<circle cx="([0-9.]+)"', far))) == 5
    same = [row.model_copy(update={"duration_days": 30.0}) for row in rows]
    assert rows_by_days_and_cost(same) is None


class Reader(HTMLParser):
    """Collects section ids, links to elsewhere, and whether all tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.sections: set[str] = set()
        self.links: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "section":
            self.sections.add(named["id"] or "")
        # what a reader may follow is not fetched
        self.links += [named[key] or "" for key in ("src", "href", "xlink:href") if key in named and tag != "a"]
        if tag not in ("meta", "br", "line", "circle", "path", "polyline", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("line", "circle", "path", "polyline", "rect"):
            assert self.open.pop() == tag


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert not reader.open
    return reader


def test_the_page_has_every_part_and_asks_nobody() -> None:
    page = report(plan(), Catalog())
    reader = read(page)
    assert reader.sections == SECTIONS
    assert not reader.links
    assert "<script" not in page
    assert "url(" not in page
    assert "@import" not in page
    first = plan().assignments[0]
    assert first.purchase is not None
    for text in (f"{first.cost_usd:,.0f} USD", "proven optimal", "Llama 3 paper, table 5", "H100 Freakonomics",
                 *(item.item for item in first.purchase.bill)):
        assert text in page


def test_every_kind_of_replica_has_its_row() -> None:
    made = shipped_answer("chat-and-code")
    assert len(made.assignments) > 1
    page = report(made, Catalog())
    rows = re.findall("<tr>(.*?)</tr>", page[page.index('id="plan"'):page.index('id="memory"')], re.DOTALL)
    for each in made.assignments:
        assert each.serving is not None
        hourly = f"{(each.usd_per_node_hour or 0.0) * (each.nodes + each.spare_nodes):,.2f}"
        assert any(each.workload in row and each.gpu in row and hourly in row for row in rows)
    assert "of the first row alone" in page


def test_the_break_even_of_the_chart_is_that_of_the_figures() -> None:
    """Capital over what a month of renting costs more than a month of owning."""
    bought, rent = plan().assignments[0], min(a.cost_usd or 0 for a in plan().alternatives if a.purchase is None)
    assert bought.purchase is not None
    assert bought.duration_days is not None
    month = rent / (bought.duration_days * 24) * 730 * 0.8
    owning = sum(usd for name, usd in bought.purchase.usd_per_month.items() if name != "depreciation")
    assert f">{bought.purchase.capex_usd / (month - owning):.1f} months<" in report(plan(), Catalog())


def test_what_a_scenario_says_is_text_on_the_page() -> None:
    page = report(plan(name="<b>bold</b> & 'quoted'"), Catalog())
    assert "<b>" not in page
    assert "&lt;b&gt;bold" in page


def test_the_page_draws_the_network_of_the_offer_and_sources_its_price() -> None:
    page = report(plan(sourcing__rent__providers="aws", limits__deadline="30 d", sourcing__buy__utilization="0.05"),
                  Catalog())
    assert "price: aws p5.48xlarge" in page
    assert "efa-v" in page
    assert "ib-ndr: " not in page


def test_what_holds_a_model_is_shown_for_every_purpose() -> None:
    scenario, defaults = load_scenario("fewest-gpus-70b", {}, Catalog())
    made = make_plan(scenario, Catalog(), defaults=defaults)
    page = report(made, Catalog())
    assert render_answer_line(made) in page
    assert all(one.workload in page for one in made.assignments)
    assert 'id="rent-or-buy"' not in page


def test_no_plan_is_a_page_too() -> None:
    page = report(plan(limits__deadline="1 min"), Catalog())
    assert read(page).sections == {"why", "proof"}
    assert "no layout finishes in 1 min" in page


@pytest.mark.parametrize("most", [0.3, 1.0, 7.0, 48.0, 62.5e6, 1e9])
def test_ticks_are_few_and_round(most: float) -> None:
    marks = ticks(most)
    assert 4 <= len(marks) <= 10
    assert marks[0] == 0
    assert marks[-1] <= most < marks[-1] + marks[1] * 1.0001


def test_the_command_writes_the_page_or_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, page = tmp_path / "plan.json", tmp_path / "report.html"
    made.write_text(to_json(plan()), encoding="utf-8")
    assert main(["report", str(made), "-o", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == report(plan(), Catalog())
    capsys.readouterr()
    for text, said in (("{", "Invalid JSON"), ('{"schema": "planner.plan/1"}', "status: Field required")):
        made.write_text(text, encoding="utf-8")
        assert main(["report", str(made), "-o", str(page)]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert "plan.json" in error
    assert main(["report", str(tmp_path / "none.json"), "-o", str(page)]) == 2


@needs_browser
def test_a_browser_draws_it_light_dark_and_on_paper(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report(plan(), Catalog()), encoding="utf-8")
    light = corner(browse(page, "--screenshot=light.png", "--blink-settings=preferredColorScheme=1") / "light.png")
    dark = corner(browse(page, "--screenshot=dark.png", "--blink-settings=preferredColorScheme=0") / "dark.png")
    assert light == (255, 255, 255)
    assert dark == (20, 24, 31)
    printed = (browse(page, "--print-to-pdf=report.pdf") / "report.pdf").read_bytes()
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 12


def browse(page: Path, *arguments: str) -> Path:
    """Run the browser without a window; nothing it says may be of the page."""
    assert CHROMIUM is not None
    ran = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1400",
         f"--user-data-dir={page.parent / 'profile'}", "--enable-logging=stderr", *arguments, page.as_uri()],
        cwd=page.parent, capture_output=True, text=True, timeout=600, check=True,
        env=os.environ | {"HOME": str(page.parent)})
    assert "CONSOLE" not in ran.stderr
    return page.parent


def corner(picture: Path) -> tuple[int, int, int]:
    """Return the color of a PNG's first pixel, which no filter changes."""
    data, body, at = picture.read_bytes(), b"", 8
    while at < len(data):
        size, kind = int.from_bytes(data[at:at + 4], "big"), data[at + 4:at + 8]
        body += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    row = zlib.decompress(body)
    return row[1], row[2], row[3]
