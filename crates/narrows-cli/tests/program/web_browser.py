"""web_browser.py EDITOR READER: looks at a run called lab in Chromium, sets and undoes; exits with 77 without a browser."""
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

editor, reader = sys.argv[1:]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    context = browser.new_context()
    context.set_default_timeout(120_000)
    page = context.new_page()
    problems, places = [], []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: places.append(request.url))
    page.goto(editor)
    page.wait_for_selector("#topology .way")
    assert "token" not in page.url, page.url
    assert page.locator("#topology .node").count() == 2
    assert page.locator("#links tbody tr").count() == 2
    page.fill("#key", "link.down.rate")
    page.fill("#value", "soon")
    page.get_by_text("expected a rate").wait_for()
    assert page.locator("#apply").is_disabled()
    page.fill("#value", "2mbit")
    page.wait_for_selector("#apply:enabled")
    assert page.input_value("#line") == "narrows set --run lab link.down.rate=2mbit"
    page.click("#apply")
    page.locator("#links tbody tr", has_text="link.down").get_by_text("2mbit").wait_for()
    page.locator("#events", has_text="link.down.rate=2mbit").wait_for()
    page.click("#undo")
    page.locator("#links tbody tr", has_text="link.down").get_by_text("10mbit").wait_for()
    page.click("#theme")
    own = editor.split("/?")[0]
    assert all(place.startswith((own, "data:")) for place in places), places
    assert not problems, problems
    # Who may only look finds nothing to press.
    other = browser.new_context().new_page()
    other.goto(reader)
    other.wait_for_selector("#topology .way", timeout=120_000)
    assert other.locator("#outage").is_disabled() and other.locator("#apply").is_disabled()
    browser.close()
print("all seen")
