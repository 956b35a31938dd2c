"""web_group.py READER: looks at a lab of three nodes in Chromium, one of whose two links is a run; exits with 77 without a browser."""
import shutil
import sys

chromium = shutil.which("chromium") or shutil.which("chromium-browser")
try:
    from playwright.sync_api import sync_playwright
except ImportError:
    print("playwright is missing")
    sys.exit(77)
if chromium is None:
    print("chromium is missing")
    sys.exit(77)

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    context = browser.new_context()
    context.set_default_timeout(120_000)
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    # The only runs are a group: it is shown at once.
    page.goto(sys.argv[1])
    page.wait_for_selector("#group-topology .way")
    assert page.url.endswith("/?group=pair"), page.url
    assert sorted(page.locator("#group-topology .node text").all_text_contents()) == ["a", "b", "c"]
    ways = page.locator("#group-topology .way")
    assert [way.get_attribute("class") for way in ways.all()] == ["way", "way", "way plain"]
    rows = [row.split("\t")[:3] for row in page.locator("#group-links tbody tr").all_inner_texts()]
    assert rows[2] == ["b:eth1 – c:eth0", "", "not shaped"], rows
    assert [row[:2] for row in rows[:2]] == [[ends, "clab-pair-a"] for ends in ("a:eth0 → b:eth0", "b:eth0 → a:eth0")], rows
    # A link leads to its run, and that back to the lab.
    ways.first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#topology .way")
    assert "run=clab-pair-a" in page.url, page.url
    page.click("#group-link")
    page.wait_for_selector("#group-topology .way")
    assert not problems, problems
    browser.close()
    print("done")
