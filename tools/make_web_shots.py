"""Take docs/web-*.png: screenshots of `foldline serve --demo` in Chromium, light, dark and on a phone.

Usage: python -m tools.make_web_shots
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Generator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from foldline.config import ServeSettings
from foldline.service.demo import NAME, demonstration
from foldline.service.server import HttpServer

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
DESKTOP, PHONE = (1280, 800), (390, 844)
TO_THE_FOLD: Final = "document.querySelector('.fold-line').scrollIntoView({block: 'center'})"
ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")


@contextmanager
def service() -> Generator[str]:
    """Serve the demonstration; yields its URL."""
    ready, urls = threading.Event(), list[str]()

    def on_ready(url: str) -> None:
        urls.append(url)
        ready.set()

    with demonstration(ServeSettings(port=0, summaries="offline")) as serve:
        server = HttpServer(serve, on_ready)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        ready.wait(20)
        try:
            yield urls[0]
        finally:
            server.should_exit = True
            thread.join(20)


@contextmanager
def page(browser: Browser, size: tuple[int, int], scheme: str = "light") -> Generator[Page]:
    """Open a page."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
    opened = context.new_page()
    opened.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    try:
        yield opened
    finally:
        context.close()


def take(browser: Browser, url: str) -> None:
    """Take the pictures: a preview first, then the folded session, then a replay of it."""
    session = f"{url}/web/s/{NAME}"
    with page(browser, DESKTOP) as shown:
        shown.goto(session)
        shown.locator(".actions summary", has_text="Fold").click()
        shown.locator("#focus").fill("the rate limits")
        shown.get_by_role("button", name="Preview").first.click()
        shown.locator("#summary").wait_for()
        shoot(shown, "web-preview")
        shown.get_by_role("button", name="Fold", exact=True).click()
        shown.locator(".notice").wait_for()
    for size, scheme, name in (
        (DESKTOP, "light", "web-session"),
        (DESKTOP, "dark", "web-session-dark"),
        (PHONE, "dark", "web-phone"),
    ):
        with page(browser, size, scheme) as shown:
            shown.goto(f"{session}?panel=tokens" if scheme == "light" else session)
            shown.evaluate(TO_THE_FOLD)
            if size == DESKTOP:
                shown.evaluate("scrollTo(0, 0)")
            shoot(shown, name)
    with page(browser, DESKTOP) as shown:
        shown.goto(session)
        shown.locator(".more > summary").click()
        shown.get_by_role("link", name="Compare policies").click()
        shown.get_by_role("button", name="Replay").click()
        shown.get_by_text("Done in").wait_for(timeout=120_000)
        shown.wait_for_function("[...document.images].every((image) => image.complete)")
        shoot(shown, "web-replay")


def shoot(shown: Page, name: str) -> None:
    """Take one picture."""
    shown.wait_for_timeout(300)
    raw = shown.screenshot()
    with Image.open(BytesIO(raw)) as image:  # with a palette, a page with few colours is a third of the size
        image.convert("RGB").quantize(128).save(DOCS / f"{name}.png", optimize=True)


def main() -> None:
    """Take all pictures."""
    with service() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        take(browser, url)
        browser.close()


if __name__ == "__main__":
    main()
