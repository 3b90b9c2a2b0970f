"""The pages in a real browser: both themes, two widths, the keyboard alone, and nothing from another host."""

import os
import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from planner.cli.main import main
from tests.web.conftest import CHROMIUM
from tests.web.test_interface import FLAGS
from tests.web.test_pages import ASKED

AXE = Path(os.environ.get("PLANNER_AXE", "/nowhere"))
"""axe.min.js of the npm package axe-core, which checks accessibility; .ci/run gets it where it can."""
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: install the system's package chromium")
FIT = "/?model=llama-3.1-8b&node=dgx-h100&layout=tp%3D8"
expect.set_options(timeout=60_000)
JOBS = """horizon: {start: 2027-01-04, length: 8 weeks, period: 7 d}
jobs: [{name: a, workload: {kind: training, model: gpt2, method: pretrain, tokens: 1 G}, deadline: 2027-02-01}]
hardware: {candidates: [h100-sxm-1x]}
"""
SCREENS = {"fit": (FIT, "#answer .bars"), "service": ("/?kind=serving", "#answer .bars"),
           "plan": (f"/plan?{ASKED}", "#plan"), "compare": (f"/compare?{ASKED}", ".sortable"),
           "rent": ("/compare?on=8xh100&years=3", "#answer table"),
           "explain": (f"/explain?{ASKED}", "#answer section"), "portfolio": ("/portfolio", "#f-yaml"),
           "schedule": (f"/portfolio?yaml={quote(JOBS)}", "#jobs table"), "api": ("/api", "h2")}
BROKEN = """[...document.querySelectorAll("#answer td:not(.source), #answer th")].flatMap(cell => {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), broken = [];
    for (let text; text = texts.nextNode();) for (const word of text.data.matchAll(/[A-Za-z0-9.,]+/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(one => one.top)).size > 1) broken.push(word[0]);
    }
    return broken;
})"""
"""Words of tables that stand on two lines."""
HIDDEN = """[...document.querySelectorAll(".wide")].filter(one => one.scrollWidth > one.clientWidth &&
    (innerWidth > 760 || one.querySelector("table"))).map(one => one.ariaLabel)"""
"""Tables of which a part is out of sight, and charts beyond a phone, where a year is wider than the screen."""


@pytest.mark.parametrize(("path", "there"), SCREENS.values(), ids=SCREENS)
def test_a_screen_fits_its_width_in_both_themes(page, path, there):
    page.goto(path)
    page.wait_for_selector(there)
    colors = set()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        colors.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(BROKEN) == []
            page.evaluate("new Promise(requestAnimationFrame)")
            assert page.evaluate(HIDDEN) == []
    assert len(colors) == 2
    unnamed = page.evaluate("""[...document.querySelectorAll("input:not([type=hidden]), select, textarea, button")]
        .filter(one => !one.labels?.length && !one.ariaLabel && !one.textContent.trim()).map(one => one.outerHTML)""")
    assert unnamed == []


@pytest.mark.skipif(not AXE.is_file(), reason="PLANNER_AXE names no axe.min.js: npm pack axe-core has it")
@pytest.mark.parametrize(("path", "there"), SCREENS.values(), ids=SCREENS)
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_serious(chromium, web, path, there, theme, width):
    context = chromium.new_context(base_url=str(web.base_url), viewport={"width": width, "height": 900},
                                   color_scheme=theme, bypass_csp=True)
    page = context.new_page()
    page.goto(path)
    page.wait_for_selector(there, timeout=60_000)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []
    context.close()


def test_an_estimate_follows_the_keyboard_and_says_what_is_wrong_at_its_field(page):
    page.goto(FIT)
    before = page.inner_text("#answer .answer")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the question"
    while page.evaluate("document.activeElement.id") != "f-seq_len":
        page.keyboard.press("Tab")
    page.keyboard.type("1024")
    expect(page.locator("#answer .answer")).not_to_have_text(before)
    expect(page).to_have_url(re.compile("seq_len=1024"))
    page.keyboard.type("x")
    page.wait_for_selector("#f-seq_len[aria-invalid]")
    assert page.inner_text("#e-seq_len").startswith("seq_len: ")
    page.keyboard.press("Backspace")
    page.wait_for_selector("#f-seq_len:not([aria-invalid])")
    page.fill("#f-model", "llama 3 8c")
    page.get_by_role("button", name="llama-3-8b", exact=True).click()
    expect(page.locator("#f-model")).to_have_value("llama-3-8b")
    expect(page.locator("#wrong")).to_have_text("")


def test_the_verdict_is_seen_while_the_answer_is_not(page):
    page.set_viewport_size({"width": 1280, "height": 400})
    page.goto(FIT)
    expect(page.locator("#verdict")).to_be_hidden()
    page.get_by_role("button", name="Estimate").scroll_into_view_if_needed()
    expect(page.locator("#verdict")).to_have_text(page.locator("#answer .answer").text_content())
    expect(page.locator("#verdict")).to_be_in_viewport()
    page.get_by_text("All figures, and how far to trust them").click()
    assert page.get_by_label("Global batch", exact=True).get_attribute("placeholder") == "2048"
    page.get_by_label("Global batch, slider").fill("13")
    expect(page.locator("#f-global_batch")).to_have_value("8192")
    expect(page.locator("#busy")).to_have_text("")
    expect(page.locator("#verdict")).to_be_visible()
    assert page.locator("#verdict").text_content() == page.locator("#answer .answer").text_content()
    assert page.locator("details[open] summary").all_inner_texts() == ["All figures, and how far to trust them"]
    seen = page.evaluate("""async () => {
        const range = document.querySelector("[aria-label='Sequence length, slider']"), seen = new Set();
        for (let step = 0; step < 200 && seen.size < 3; step++) {
            range.value = 10 + step % 40 / 20;
            range.dispatchEvent(new Event("input", { bubbles: true }));
            await new Promise(done => setTimeout(done, 30));
            seen.add(document.querySelector("#answer .answer").textContent);
        }
        return seen.size; }""")
    assert seen == 3, "answers come while the slider moves, not only where it stops"


def test_what_needs_offload_is_asked_without_it_by_a_link(page):
    page.goto("/?model=qwen2.5-32b&method=qlora&node=rtx-4090-1x&seq_len=2048")
    expect(page.locator("#answer .answer")).to_contain_text("on the host")
    page.get_by_role("link", name="The same without offload").click()
    expect(page.locator("#answer .answer")).to_contain_text("Probably does not fit")
    expect(page.locator("#answer .answer")).not_to_contain_text("on the host")
    expect(page.get_by_role("link", name="The same without offload")).to_have_count(0)
    assert page.get_by_label("Sequence length", exact=True).input_value() == "2048"


def test_stop_is_heard_although_it_comes_before_the_server_has_said_which_search_it_began(page):
    page.goto("/plan")
    page.route("**/api/jobs", lambda route: (page.wait_for_timeout(1500), route.continue_()))
    page.fill("#f-model", "deepseek-v3")
    page.fill("#f-tokens", "14 T")
    page.get_by_role("button", name="Plan", exact=True).click()
    page.get_by_role("button", name="Stop, with the best so far").click()
    expect(page.locator("#busy")).to_have_text("Stopping")
    expect(page.locator("#busy")).to_have_text("")
    expect(page.locator("#cancel")).to_be_hidden()


def test_what_a_stopped_search_has_is_not_said_to_be_the_answer_of_its_address(page):
    page.goto("/plan?model=deepseek-v3&tokens=14+T&global_batch=15360+sequences+%2B-+10%25")
    expect(page.locator("#progress")).to_contain_text("best so far")
    page.get_by_role("button", name="Stop, with the best so far").click()
    expect(page.locator("#answer .answer")).to_contain_text("Best found")
    expect(page.get_by_text("the address of this page begins the search anew")).to_be_visible()
    expect(page.get_by_text("opens the same answer by it")).to_be_hidden()


def test_a_plan_is_asked_by_the_form_answered_as_on_the_command_line_and_its_address_is_the_question(page, capsys):
    page.goto("/plan")
    for name, value in (("model", "gpt2"), ("tokens", "1 G"), ("on", "h100-sxm-1x")):
        page.fill(f"#f-{name}", value)
    page.click("text=Everything else")
    page.fill("#f-max_gpus", "1")
    page.fill("#f-stack", "fsdp2")
    page.keyboard.press("Enter")
    page.wait_for_selector("#plan")
    said = page.inner_text("#answer .answer")
    assert main(["plan", *FLAGS, "-q"]) == 0
    assert said == capsys.readouterr().out.strip()
    page.goto(page.url)
    assert page.inner_text("#answer .answer") == said
    page.click("#alternatives a")
    page.wait_for_selector("#answer .bars")


def test_the_file_and_the_fields_edit_each_other(page):
    page.goto("/plan")
    page.click("text=The question as a file")
    page.fill("#f-yaml", "workload: {kind: serving, model: gpt2, rate: 5, input: 100, output: 10}\nname: mine\n")
    expect(page.locator("#f-rate")).to_have_value("5")
    assert page.is_checked("[name=kind][value=serving]")
    assert page.input_value("[name=yaml]") == "name: mine\n"
    page.fill("#f-rate", "7")
    expect(page.locator("#f-yaml")).to_have_value(re.compile("rate: '7'"))
    page.fill("#f-yaml", "workload: {model: [")
    page.wait_for_selector("#f-yaml[aria-invalid]")
    assert "question.yaml:1" in page.inner_text("#e-yaml")
    page.fill("#f-yaml", "workload: {model: [[")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#wrong")).to_contain_text("question.yaml:1")
    expect(page.locator("#progress")).to_be_hidden()


def test_a_table_sorts_and_filters_and_the_frontier_is_a_click_away(page):
    page.goto("/plan?model=gpt2&tokens=1+G&on=h100-sxm-1x,l4-1x&max_gpus=1&stack=fsdp2&pareto=cost,days")
    page.get_by_role("button", name="Keep, to compare with another plan").click()
    expect(page.locator("#kept")).to_contain_text("both stand side by side")
    assert page.locator(".fields #f-stack").input_value() == "fsdp2", "what is folded and said is not folded"
    page.get_by_role("link", name="Compare all hardware").click()
    page.wait_for_selector(".sortable button")
    page.click("th button:has-text('cost')")

    def costs():
        return [float(cell.removesuffix(" USD").replace(",", "")) for cell in page.locator(
            ".sortable tbody tr:visible td:nth-child(5)").all_inner_texts() if cell]

    assert len(costs()) > 2
    assert costs() == sorted(costs())
    expect(page.get_by_role("button", name="cost", exact=True)).to_be_visible()  # which way is said by aria-sort
    page.click("th button:has-text('cost')")
    assert costs() == sorted(costs(), reverse=True)
    page.fill("label:has-text('Only rows with') input", "l4-1x")
    assert set(page.locator(".sortable tbody tr:visible td:nth-child(1)").all_inner_texts()) == {"l4-1x"}
    page.get_by_role("link", name="The exact frontier").click()
    expect(page.locator("#answer .answer")).to_contain_text("Cheapest")


def test_each_kind_of_work_has_its_form_and_begins_with_an_answer(page):
    page.goto(FIT)
    for name, method, field in (("Making images, clips or sound", "inference", "guidance"),
                                ("Tuning on preferences", "dpo", "reference"),
                                ("Reinforcement learning", "grpo", "prompts"), ("Training", "pretrain", "tokens")):
        page.get_by_role("radio", name=name, exact=True).check()
        expect(page.get_by_role("status")).to_have_text("")
        expect(page.locator("#answer .answer")).to_contain_text("Fits")
        options = page.locator("#f-method option:not([disabled])").all_inner_texts()
        assert method in options
        assert page.locator(f"#f-{field}").is_enabled()
        assert page.locator("#wrong").inner_text() == ""
    assert page.locator("#f-guidance").is_disabled()
    page.get_by_role("radio", name="A service", exact=True).check()
    page.get_by_label("Users", exact=True).fill("20")
    expect(page.get_by_label("Concurrency", exact=True)).to_have_value("")
    expect(page.locator("#answer .answer")).to_contain_text("requests/s")
    expect(page.locator("#wrong")).to_have_text("")


def test_a_kind_begins_with_its_own_values_unless_somebody_typed_others(page):
    page.goto("/")
    answers, prompts = page.get_by_label("Output tokens", exact=True), page.get_by_label("Prompt tokens", exact=True)
    page.get_by_role("radio", name="Reinforcement learning", exact=True).check()
    expect(answers).to_have_value("1500")
    prompts.fill("700")
    page.get_by_role("radio", name="A service", exact=True).check()
    expect(answers).to_have_value("300")
    expect(prompts).to_have_value("700")
    page.get_by_label("Model", exact=True).fill("flux.1-dev")
    expect(page.get_by_role("radio", name="Making images, clips or sound", exact=True)).to_be_checked()
    expect(page.locator("#answer .answer")).to_contain_text("an image")
    page.get_by_label("Model", exact=True).fill("llama-3.1-8b")
    expect(page.get_by_role("radio", name="A service", exact=True)).to_be_checked()
    expect(page.locator("#answer .answer")).to_contain_text("requests/s")
    assert [answers.input_value(), prompts.input_value()] == ["300", "700"]


def test_all_that_is_wrong_stands_at_its_fields_after_one_press(page):
    page.goto("/plan")
    wrong = {"Model": "lama-3.1-8b", "Tokens": "many", "Deadline": "soon", "Hardware": "h1000"}
    for label, value in wrong.items():
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#wrong a")).to_have_count(4)
    for name in ("model", "tokens", "deadline", "on"):
        assert page.locator(f"#f-{name}").get_attribute("aria-invalid") == "true"
        assert page.inner_text(f"#e-{name}")
    page.get_by_role("button", name="llama-3.1-8b", exact=True).click()
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#wrong a")).to_have_count(3)


def test_where_there_is_no_plan_there_are_no_files_that_start_one(page):
    for deadline, is_there in (("1 s", False), ("300 d", True)):
        page.goto(f"/plan?model=gpt2&tokens=10+M&on=h100-sxm-1x&stack=megatron-core&deadline={quote(deadline)}")
        expect(page.get_by_role("link", name="JSON", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="launch files")).to_be_visible(visible=is_there)
        expect(page.get_by_role("link", name="CSV", exact=True)).to_be_visible(visible=is_there)


def test_what_differs_between_two_plans_stands_above_them(page):
    page.goto(f"/two?left={quote(ASKED)}&right={quote(ASKED.replace('1+G', '2+G'))}")
    expect(page.locator("#differ")).to_contain_text("steps")
    assert "Searching" not in page.inner_text("#differ")


def test_a_file_is_uploaded_by_its_field_and_asked_about(page, tmp_path):
    (tmp_path / "samples.jsonl").write_text('{"text": "a sample of words"}\n' * 200)
    page.goto("/plan?model=gpt2&method=full&on=h100-sxm-1x&max_gpus=1&stack=fsdp2")
    page.wait_for_selector("#answer[data-there], #answer p, #answer section")
    page.get_by_text("Everything else that can be said").click()
    page.get_by_label("Dataset, a file to upload").set_input_files(tmp_path / "samples.jsonl")
    expect(page.get_by_label("Dataset", exact=True)).to_have_value(re.compile(r"samples\.jsonl@[0-9a-f]{32}"))
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#busy")).to_have_text("")
    expect(page.locator("#answer")).to_contain_text("1 epoch of 200 samples")
    expect(page.locator("#as-command")).to_have_value(re.compile(r"--dataset samples\.jsonl"))
    (tmp_path / "samples.bin").write_bytes(b"\xff\xfe")
    page.get_by_label("Dataset, a file to upload").set_input_files(tmp_path / "samples.bin")
    expect(page.locator("#e-dataset")).to_contain_text("UTF-8 text")


@pytest.mark.parametrize("place", ["A config of a framework, a file", "The question, a file"])
def test_a_config_of_a_framework_is_the_question_and_what_the_page_began_with_is_not(page, tmp_path, place):
    (tmp_path / "axolotl.yml").write_text("base_model: meta-llama/Llama-3.1-8B\nadapter: qlora\nload_in_4bit: true\n"
                                          "lora_r: 32\nsequence_len: 1024\nmicro_batch_size: 1\n"
                                          "gradient_accumulation_steps: 4\ngradient_checkpointing: true\n"
                                          "num_epochs: 1\noptimizer: adamw_bnb_8bit\n")
    page.goto("/?model=llama-3.1-70b&method=lora&node=rtx-4090-1x")
    page.get_by_label(place).set_input_files(tmp_path / "axolotl.yml")
    expect(page.locator("#answer")).to_contain_text("Read from the config")
    expect(page.locator("#answer .answer")).to_contain_text("Fits")
    assert page.get_by_label("Model", exact=True).input_value() == ""
    assert page.get_by_label("Node type").input_value() == "rtx-4090-1x"
    expect(page.locator("#as-command")).to_have_value(re.compile("--from config.txt"))


def test_nothing_jumps_while_answers_come(page):
    page.add_init_script("""window.shifted = 0; new PerformanceObserver(list => list.getEntries().forEach(one => {
        if (!one.hadRecentInput) window.shifted += one.value; })).observe({ type: "layout-shift", buffered: true })""")
    for path in (FIT, f"/plan?{ASKED}", f"/compare?{ASKED}", f"/explain?{ASKED}",
                 f"/two?left={quote(ASKED)}&right={quote(ASKED.replace('1+G', '2+G'))}"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        if path.startswith("/two"):
            expect(page.locator("#differ")).not_to_contain_text("Searching")
        assert page.evaluate("window.shifted") < 0.1, path


def test_what_is_wrong_stands_at_its_field_and_line_while_it_is_written(page):
    page.goto("/plan")
    page.get_by_label("Model", exact=True).fill("gpt2")
    page.get_by_label("Tokens", exact=True).fill("many")
    expect(page.locator("#e-tokens")).to_contain_text("'many' is not a token count")
    page.get_by_label("Tokens", exact=True).fill("1 G")
    expect(page.locator("#e-tokens")).to_have_text("")
    page.get_by_text("The question as a file").click()
    written = "# of mine\nworkload:\n  model: gpt2\n  flavor: 3\n  tokens: 1 G\n"
    page.get_by_label("YAML; edit it").fill(written)
    expect(page.locator("#e-yaml")).to_contain_text("question.yaml:4: workload: unknown key 'flavor'")
    page.get_by_role("button", name="Plan", exact=True).click()
    page.locator("#wrong a").click()
    expect(page.get_by_label("YAML; edit it")).to_have_value(written)
    assert page.evaluate("getSelection().toString()") == "  flavor: 3"
