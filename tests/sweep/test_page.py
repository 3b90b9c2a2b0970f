"""The Python of docs/sweep.md reads what a sweep writes; its commands are run by tests/test_docs.py."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "sweep.md"


def test_the_lines_are_read_as_the_page_reads_them(planner, question, tmp_path, monkeypatch, capsys):
    code, = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    asked = tmp_path / "rented.yaml"
    asked.write_text(question.read_text().replace("{own: {dgx-h100: 1}}", "{rent: {providers: [nebius]}}"))
    ran = planner("sweep", asked, "--vary", "hardware.candidates=dgx-h100,mi300x-1x", "--vary",
                  "limits.deadline=3d,1h", "-o", "answers.jsonl", "--workers", "1")
    assert ran.code == 2  # nobody rents out an mi300x-1x
    exec(code, {})
    plan, *others = capsys.readouterr().out.splitlines()
    assert plan.startswith("{'hardware.candidates': 'dgx-h100', 'limits.deadline': '3d'} (8, ")
    assert [line.rpartition(" ")[2] for line in others] == ["None"] * 3
