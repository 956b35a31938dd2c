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
    # Packets are there while they are inspected: with the keyboard alone, filtered, paused, and one in full.
    inspected = [place for place in places if "/api/packets" in place]
    assert not inspected, inspected
    page.focus("#packets-watch")
    page.keyboard.press("Enter")
    dropped = page.locator("#packets-table td.dropped")
    dropped.first.wait_for()
    page.locator("#packets-table td.delivered").first.wait_for()
    page.get_by_label("Only drops").check()
    assert page.locator("#packets-table td.delivered").count() == 0
    page.select_option("#packets-reason", "queue full")
    page.select_option("#packets-link", "link.up")
    page.select_option("#packets-host", "client")
    page.select_option("#packets-protocol", "udp")
    page.click("#packets-pause")
    text = "dropped by link.up: the queue was full (queue=5 packets)"
    assert set(dropped.all_inner_texts()) == {text}, dropped.all_inner_texts()
    before = page.locator("#packets-table tbody").inner_text()
    row = page.locator("#packets-table tbody button").first
    row.focus()
    page.keyboard.press("Enter")
    page.locator("#packet-steps").get_by_text(text).wait_for()
    assert page.locator("#packet-facts").get_by_text("link.up.queue=5 packets").is_visible()
    assert page.evaluate("document.activeElement.id") == "packet-title"
    page.keyboard.press("Escape")
    assert page.locator("#packet").is_hidden() and row.evaluate("row => row === document.activeElement")
    assert page.locator("#packets-table tbody").inner_text() == before, "paused"
    page.set_viewport_size({"width": 390, "height": 844})
    # Charts are drawn again in the new width a little later.
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
    page.click("#packets-watch")
    assert page.locator("#packets-watch").inner_text() == "Inspect packets"
    page.click("#theme")
    own = editor.split("/?")[0]
    assert all(place.startswith((own, "data:")) for place in places), places
    assert not problems, problems
    # Who may only look finds nothing to press.
    other = browser.new_context().new_page()
    other.goto(reader)
    other.wait_for_selector("#topology .way", timeout=120_000)
    other.click("#packets-watch")
    other.locator("#packets-table tbody tr").first.wait_for(timeout=120_000)
    assert other.locator("#outage").is_disabled() and other.locator("#apply").is_disabled()
    browser.close()
print("all seen")
