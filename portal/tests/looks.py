"""What is asked of each page in Chromium: what it did that it must not, and what axe-core finds."""

import json
from typing import Any

from conftest import ROOT
from directory.tests.page.browser import Browser

AXE = ROOT / "portal" / "assets" / "node_modules" / "axe-core" / "axe.min.js"


def complaints(browser: Browser) -> list[str]:
    """Return what pages did that they must not: errors, blocked sources, dialogs."""
    named = ("Runtime.exceptionThrown", "Page.javascriptDialogOpening", "Log.entryAdded")
    found = [str(event) for event in browser.events if event[0] in named]
    # the page that is lost; tests that make networks; WebGL without a graphics card
    fine = ("404 (Not Found)", "ERR_NETWORK_CHANGED", "GPU stall")
    return [one for one in found if not any(text in one for text in fine)]


def serious(browser: Browser, **options: Any) -> list[tuple[str, list[str]]]:
    """Return what axe-core finds serious on the page that is shown: rules, and where."""
    browser.evaluate(AXE.read_text() + "; 0")
    asked = json.dumps({"resultTypes": ["violations"], **options})
    found = browser.evaluate(f"axe.run({asked}).then(r => r.violations)")
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
