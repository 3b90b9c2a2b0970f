"""A portfolio in a real browser: its jobs by a form, deadlines that move, and what that changes."""

import re
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect

from tests.web.conftest import CHROMIUM
from tests.web.test_browser import JOBS

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: install the system's package chromium")


def test_a_deadline_is_dragged_or_moved_by_keys_and_the_plan_is_made_again(page):
    page.goto("/portfolio")
    page.get_by_label("YAML; edit it").fill(JOBS)
    expect(page.get_by_label("Deadline of a")).to_have_value("2027-02-01")
    page.get_by_role("button", name="Portfolio").click()
    mark = page.get_by_role("slider", name="Move a's deadline")
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 100, box["y"], steps=3)
    page.mouse.up()
    expect(page.get_by_label("YAML; edit it")).to_have_value(re.compile("deadline: 2027-01-2"))
    expect(page.get_by_role("group", name="Before and after")).to_contain_text("Nothing moves")
    expect(page.locator("#busy")).to_have_text("")
    mark.focus()
    page.keyboard.press("PageUp")
    page.keyboard.press("Enter")
    expect(page.get_by_label("YAML; edit it")).to_have_value(re.compile("deadline: 2027-0(1-2[7-9]|1-3|2-0)"))
    expect(page.locator("#busy")).to_have_text("")
    expect(mark).to_be_focused()  # the plan is another, and who moves by keys goes on where they were
    assert page.locator("#wrong").inner_text() == ""


def test_the_time_that_is_planned_is_said_before_there_is_a_job(page):
    page.goto("/portfolio")
    page.get_by_label("First day").fill("2026-12-01")
    page.get_by_label("Name", exact=True).fill("a")
    page.get_by_label("Model", exact=True).fill("gpt2")
    page.get_by_label("Tokens", exact=True).fill("1 G")
    page.get_by_label("Deadline", exact=True).fill("12/31/2028")
    page.get_by_role("button", name="Add this job").click()
    expect(page.locator("#e-deadline")).to_have_text(
        "deadline 2028-12-31 is outside the horizon, 2026-12-01 to 2027-11-30: horizon.start says another first day, "
        "horizon.length how long")
    page.get_by_label("Deadline", exact=True).fill("03/04/2027")
    page.get_by_role("button", name="Add this job").click()
    expect(page.locator("#e-deadline")).to_contain_text("may be two days: write 2027-03-04 or 2027-04-03")
    page.get_by_label("Deadline", exact=True).fill("12/31/2026")
    page.get_by_role("button", name="Add this job").click()
    expect(page.locator("#asked-jobs li")).to_have_count(1)
    expect(page.get_by_label("YAML; edit it")).to_have_value(re.compile("start: '2026-12-01'"))


def test_deadlines_that_there_are_not_are_not_to_be_dragged(page):
    page.goto(f"/portfolio?yaml={quote(JOBS.replace(', deadline: 2027-02-01', ''))}")
    page.wait_for_selector("#jobs table")
    expect(page.locator("svg[data-start]")).to_be_visible()
    expect(page.locator("#answer")).not_to_contain_text("Drag a deadline")


def test_what_a_later_start_moves_stands_below_the_answer(page):
    page.goto(f"/portfolio?yaml={quote(JOBS)}")
    page.wait_for_selector("#jobs table")
    was = page.locator("#jobs td").nth(3).inner_text()
    page.get_by_label("YAML; edit it").fill(JOBS.replace("deadline: 2027-02-01", "release: 2027-01-11"))
    page.get_by_role("button", name="Portfolio").click()
    expect(page.locator("#busy")).to_have_text("")
    moved = page.get_by_role("group", name="Before and after")
    expect(moved.locator("tr").last).to_contain_text(was)
    expect(moved.locator("tr").last).to_contain_text("2027-01-11")


def test_the_page_says_which_job_is_late_and_what_would_save_it(page):
    due = "deadline: 2027-01-06, late: 20 USD/d"
    run = "workload: {kind: training, model: llama-3.1-8b, method: pretrain, tokens: 10 G}"
    page.goto("/portfolio?" + urlencode({"yaml": f"""horizon: {{start: 2027-01-04, length: 60 d, period: 1 d}}
jobs: [{{name: first, {run}, {due}}}, {{name: second, {run}, {due}}}]
hardware: {{candidates: [dgx-h100]}}
sourcing: {{own: [{{node: dgx-h100, nodes: 1}}]}}
"""}))
    expect(page.locator("#answer")).to_contain_text("Why rejected or late")
    expect(page.locator("#reasons")).to_contain_text("second: no earlier")
    expect(page.locator("#reasons li")).to_have_text(["Enough: own.dgx-h100 2 nodes instead of 1 node",
                                                      "Enough: second.deadline 2027-01-08 instead of 2027-01-06"])


def test_a_deadline_of_a_shipped_scenario_moves_although_no_file_was_written(page, monkeypatch):
    page.goto("/portfolio")
    page.evaluate("document.getElementById('f-scenario').value = 'startup-year'")  # before any script heard of it
    page.evaluate("moveDeadline('base', '2027-07-15', false)")
    expect(page.get_by_label("YAML; edit it")).to_have_value(re.compile("deadline: '?2027-07-15"))
    assert page.locator("#f-scenario").input_value() == ""


def test_jobs_are_added_by_a_form_and_the_keyboard_alone(page):
    page.goto("/portfolio")
    page.get_by_label("Name", exact=True).fill("base")
    model = page.get_by_role("combobox", name="Model")
    model.focus()
    page.keyboard.type("3.1 llama 8b")
    expect(page.locator("#l-model li")).to_have_text(["llama-3.1-8b", "meta-llama/Llama-3.1-8B"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(model).to_have_value("llama-3.1-8b")
    expect(page.locator("#l-model li")).to_have_count(0)
    page.get_by_label("Deadline", exact=True).fill("2027-02-01")
    page.keyboard.press("Enter")
    expect(page.locator("#e-tokens")).to_contain_text("required, but missing")
    page.get_by_label("Tokens", exact=True).fill("1 G")
    page.keyboard.press("Enter")
    expect(page.locator("#asked-jobs li")).to_contain_text(["base llama-3.1-8b, tokens 1 G"])
    page.get_by_label("A service").check()
    page.get_by_role("combobox", name="Model").fill("llama-3.1-8b")
    page.get_by_label("Rate", exact=True).fill("1")
    page.keyboard.press("Enter")
    expect(page.locator("#asked-jobs li")).to_have_count(2)
    page.get_by_role("button", name="Change base").click()
    expect(page.get_by_label("Tokens", exact=True)).to_have_value("1 G")
    page.get_by_label("Tokens", exact=True).fill("2 G")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Remove llama-3.1-8b").click()
    expect(page.locator("#asked-jobs li")).to_contain_text(["base llama-3.1-8b, tokens 2 G"])
    page.get_by_role("combobox", name="Hardware").fill("dgx-h100")
    page.get_by_role("button", name="Portfolio").click()
    expect(page.locator("#answer .answer")).to_contain_text("1 job on 1 pool")
    expect(page).to_have_url(re.compile(r"on=dgx-h100.*tokens%3A\+2\+G"))


LONG = JOBS.replace("name: a", f"name: {60 * 'b'}")
SHIFTS = """window.moved = 0; new PerformanceObserver(list => {
    for (const each of list.getEntries()) if (!each.hadRecentInput) window.moved += each.value; }).observe(
        { type: "layout-shift", buffered: true });"""


@pytest.mark.parametrize("width", [390, 1280])
def test_jobs_with_long_names_fit_and_nothing_jumps(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(SHIFTS)
    page.goto(f"/portfolio?yaml={quote(LONG)}")
    page.wait_for_selector("#jobs table")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.moved") < 0.06
