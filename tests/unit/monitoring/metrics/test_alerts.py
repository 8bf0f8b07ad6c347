"""Alert rules: promtool's unit tests, and the section of docs/operations.md that each leads to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[4]
FOLDER = ROOT / "deploy" / "prometheus"
PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool")


def test_every_alert_leads_to_a_section_of_the_runbook_and_none_is_left_over() -> None:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
    links = [rule["annotations"]["runbook"] for rule in rules]
    sections = re.findall(r"^### (Trawl\w+)$", (ROOT / "docs" / "operations.md").read_text("utf-8"), re.MULTILINE)
    assert links == [f"docs/operations.md#{name.lower()}" for name in sections]
    assert [rule["alert"] for rule in rules] == sections


@pytest.mark.processes
@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (apt-get install prometheus, or PROMTOOL=path)")
@pytest.mark.parametrize("arguments", [("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")])
def test_promtool_accepts_the_rules_and_their_tests_pass(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([str(PROMTOOL), *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
