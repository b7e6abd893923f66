"""A real Chromium, and what tests do in its pages again and again."""

from __future__ import annotations

import contextlib
import shutil

INSTALLED = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1300, "height": 900}
SECONDS = 60
HOSTILE = (
    "<script>window.ran=1</script><img src=x onerror='window.ran=2'>\"'{{7*7}}"
    "</textarea></title><svg onload='window.ran=3'>"
)
# a notice goes after some seconds, which a busy machine may take until a test looks for it
NOTICES_STAY = """() => {
  const later = window.setTimeout;
  window.setTimeout = (what, after, ...given) => later(what, after >= 6000 ? 20 * after : after, ...given);
}"""
DROP = """([text, ...names]) => {
  const data = new DataTransfer();
  for (const name of names) data.items.add(new File([text], name));
  document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
}"""


def find_chromium():
    """The Chromium of this machine; None where there is none."""
    return next((program for name in INSTALLED if (program := shutil.which(name))), None)


@contextlib.contextmanager
def open_page(chromium, url, *, refused=False, **settings):
    """A page; at its end its console has told no error, no dialog was opened, and nothing foreign ran.

    `refused`: that requests of it were, which a console tells, is no error.
    """
    settings = {
        "viewport": DESKTOP,
        "base_url": url,
        "accept_downloads": True,
        "reduced_motion": "reduce",
        **settings,
    }
    context = chromium.new_context(**settings)
    context.add_init_script(f"({NOTICES_STAY})()")
    page = context.new_page()
    told, failed = [], []
    page.on("console", lambda one: told.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    page.on("requestfailed", lambda one: failed.append(f"{one.method} {one.url}: {one.failure}"))
    page.set_default_timeout(SECONDS * 1000)
    try:
        yield page
    except BaseException as error:  # what a test that failed needs to be understood
        said = page.evaluate("document.getElementById('said')?.textContent")
        error.add_note(f"at {page.url}, said {said!r}, {told}, {failed}")
        raise
    ran = page.evaluate("window.ran")
    context.close()
    told = [one for one in told if not (refused and one.startswith("Failed to load resource"))]
    assert not told, told
    assert ran is None


def wait_for(page, text):
    """Wait until a text is in sight."""
    page.get_by_text(text).first.wait_for()
    page.wait_for_load_state()  # the notice stands above what it tells of


def menu(page, name):
    """Open a menu above the history: Fold, More, or one that stands under More."""
    above = page.locator(".actions > details > summary", has_text=name)
    if above.count():
        above.click()
        return
    if page.locator(".more").get_attribute("open") is None:
        page.locator(".more > summary").click()
    if page.locator(".more details[open] > summary", has_text=name).count() == 0:
        page.locator(".more details > summary", has_text=name).click()


def fold(page, how, focus=""):
    """Fold by the menu: `Preview` or `Fold at once`."""
    menu(page, "Fold")
    page.get_by_label("What the summary should focus on").fill(focus)
    page.get_by_role("button", name=how).first.click()


def choose(message, action):
    """Choose an action of a message, once nothing is about to move it."""
    wait_until_idle(message.page)
    message.locator("> header .menu > summary").click()
    message.get_by_role("button", name=action).click()


def message(page, text):
    """The newest message that says this."""
    return page.locator("article.message", has_text=text).last


def panel(page, name):
    """Choose a panel; return it, filled."""
    with page.expect_response(lambda answer: "/panel/" in answer.url):
        page.locator(".tabs a", has_text=name).click()
    page.locator(".tabs a[aria-current]", has_text=name).wait_for()
    wait_until_idle(page)
    return page.locator("#panel")


def wait_until_idle(page):
    """Wait until no part of the page is asked for, or about to be put in its place."""
    page.locator(".htmx-request, .htmx-swapping, .htmx-settling").first.wait_for(state="detached")


def say(page, text):
    """Say something to the model, and wait until it has answered."""
    page.locator("#words").fill(text)
    page.get_by_role("button", name="Send").click()
    page.locator("#history article.user", has_text=text).wait_for()
    page.locator("#stop").wait_for(state="hidden")
    wait_until_idle(page)
