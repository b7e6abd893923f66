"""Webhooks where the service stops before they could be delivered."""

from __future__ import annotations

import base64
import logging

from foldline.config import Webhook
from foldline.service.feed import Webhooks


async def test_what_the_stop_of_the_service_cuts_short_is_logged(caplog):
    secret = f"whsec_{base64.b64encode(b'x' * 32).decode()}"
    webhooks = Webhooks([Webhook(url="http://127.0.0.1:9/", secret=secret)], lambda _: False)
    with caplog.at_level(logging.WARNING, "foldline"):
        webhooks.post("default", "session.compacted", {"session": "s"})
        await webhooks.close(0.01)
    assert "1 webhooks are lost" in caplog.text
