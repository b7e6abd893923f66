"""Who sends a request: the client's program, its user, and the session that it names, by its headers."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from starlette.requests import Request

from foldline.service.gateway.session_finder import MADE
from foldline.service.tenants import Tenant
from foldline.stores.tree import is_user

SESSION: Final = "foldline-session"  # the session's name
USER: Final = "foldline-user"  # the user's name
SUBAGENT: Final = (  # sent by a sub-agent of any client, Codex, Claude Code, OpenCode
    "foldline-subagent",
    "x-openai-subagent",
    "x-claude-code-agent-id",
    "x-parent-session-id",
)
_NAMED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")  # session names that a client may use
_PRODUCT: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
NAMES: Final = {  # of agents whose user agent has another name
    "claude-cli": "claude-code",
    "codex_cli_rs": "codex",
    "codex_exec": "codex",
    "codex-tui": "codex",
    "codex_vscode": "codex",
    "geminicli": "gemini-cli",
}


class Client(msgspec.Struct, frozen=True):
    """The HTTP request of an agent and its tenant."""

    http: Request
    tenant: Tenant

    @property
    def session(self) -> str | None:
        """The name that the client gives its session; None without one that it may use."""
        name = self.http.headers.get(SESSION, "")
        return name if _NAMED.fullmatch(name) and not MADE.fullmatch(name) else None

    @property
    def user(self) -> str:
        """The user of the session, as the client names it."""
        named = self.http.headers.get(USER)
        return named if is_user(named) else ""

    @property
    def subagent(self) -> bool:
        """Whether a sub-agent sent it: its session is not folded by a threshold."""
        return any(self.http.headers.get(name, "0") not in ("", "0", "false") for name in SUBAGENT)

    @property
    def agent(self) -> str:
        """The client's program; "" if it names none."""
        return agent_of(self.http.headers.get("user-agent", ""))


def agent_of(user_agent: str) -> str:
    """Return the program of a user agent, by its first product; "" without one."""
    product = _PRODUCT.match(user_agent)
    return NAMES.get(product[0].lower(), product[0]) if product else ""
