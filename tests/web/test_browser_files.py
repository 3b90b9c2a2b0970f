"""Files in a real browser: dropped anywhere, and changed by the fields without losing what was written beside them."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.web.conftest import CHROMIUM
from tests.web.test_browser import FIT

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: install the system's package chromium")

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 512, "num_hidden_layers": 8,
          "intermediate_size": 1376, "num_attention_heads": 8, "vocab_size": 32000}


def test_a_file_is_dropped_anywhere_and_goes_where_it_belongs(page):
    drop = """([on, name, text]) => { const held = new DataTransfer();
        held.items.add(new File([text], name));
        const event = new DragEvent("drop", { dataTransfer: held, bubbles: true, cancelable: true });
        document.querySelector(on).dispatchEvent(event);
        return event.defaultPrevented; }"""
    page.goto(FIT)
    assert page.evaluate(drop, ["#answer", "config.json", json.dumps(CONFIG)]), "else the page is left for the file"
    expect(page.locator("#answer")).to_contain_text("For the model of the pasted config")
    expect(page.locator("#f-model")).to_be_disabled()
    expect(page.locator("#as-command")).to_have_value(re.compile("--model pasted "))
    page.goto("/plan")
    page.evaluate(drop, ["body", "mine.yaml", "workload: {model: gpt2, tokens: 1 G}\n"])
    expect(page.get_by_label("Tokens", exact=True)).to_have_value("1 G")
    expect(page.locator("#f-yaml")).to_be_visible()


@pytest.mark.parametrize(("fold", "place"), [("A config that you have", "#f-from_"), ("as a file", "#f-yaml")])
def test_the_config_of_a_model_is_one_wherever_it_is_pasted(page, fold, place):
    page.goto(FIT)
    page.get_by_text(fold).click()
    page.fill(place, json.dumps(CONFIG))
    expect(page.locator("#answer")).to_contain_text("For the model of the pasted config")
    expect(page.locator("#f-config")).to_be_focused()
    expect(page.locator("#f-from_")).to_have_value("")


def test_comments_of_a_file_stay_where_fields_change_it(page):
    page.goto("/plan")
    page.get_by_text("The question as a file").click()
    page.fill("#f-yaml", "# of mine\nworkload:\n  model: gpt2  # small\n  tokens: 1 G\n")
    expect(page.locator("#f-tokens")).to_have_value("1 G")
    page.fill("#f-tokens", "2 G")
    expect(page.locator("#f-yaml")).to_have_value("# of mine\nworkload:\n  model: gpt2  # small\n  tokens: 2 G\n")
