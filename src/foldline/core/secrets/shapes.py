"""Secrets that say by their form what they are: tokens, one line a shape, and private keys.

Prefixes, alphabets and lengths are what the vendors document, and what the rules of the detectors gitleaks
(MIT) and detect-secrets (Apache-2.0) list; the patterns are our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from foldline.core.secrets.plain import is_name
from foldline.core.secrets.span import BREAK, GUTTER, SecretSpan, compiled, lines_with, searched

# (kind, how it begins, one word each, what follows): at the start of a run of letters, digits, `_` and `-`
_HEADED = (
    ("Airtable token", "pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{40,}+"),
    ("Anthropic key", "sk-ant-", r"[A-Za-z0-9_\-]{16,}+"),
    ("API key", "sk-", r"(?=[A-Za-z_\-]{0,200}[0-9])[A-Za-z0-9_\-]{20,}+"),
    ("API key", "sk_", r"[a-f0-9]{40,}+"),
    ("API key", "SK fc- key-", r"(?=[a-f]{0,40}[0-9])[a-f0-9]{32}"),
    ("Atlassian token", "ATBB", r"[A-Za-z0-9]{24,}+"),
    ("AWS key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    ("ClickUp token", "pk_", r"[0-9]{5,12}_[A-Z0-9]{32}"),
    ("crates.io token", "cio", r"(?=[A-Za-z]{0,31}[0-9])[A-Za-z0-9]{32}"),
    ("Databricks token", "dapi", r"[a-f0-9]{32}(?:-[0-9])?"),
    ("DigitalOcean token", "doo_v1_ dop_v1_ dor_v1_", r"[a-f0-9]{64}"),
    ("Discord token", "M N O", r"[A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}+"),
    ("Facebook token", "EAA", r"[A-Za-z0-9]{80,}+"),
    ("Square token", "EAAA", r"[A-Za-z0-9_\-]{56,}+"),
    ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"[A-Za-z0-9_]{22,}+"),
    ("GitLab token", "gl", r"[a-z]{2,5}-[A-Za-z0-9_\-]{16,}+(?:\.[a-z0-9.]{8,20})?"),
    ("Google key", "AIza", r"[A-Za-z0-9_\-]{35}"),
    ("Google secret", "GOCSPX-", r"[A-Za-z0-9_\-]{20,}+"),
    ("Groq key", "gsk_", r"[A-Za-z0-9]{32,}+"),
    ("HubSpot token", "pat-", r"(?:na|eu)[0-9]-[a-f0-9]{8}-[a-f0-9\-]{27}"),
    ("Hugging Face token", "hf_ api_org_", r"[A-Za-z0-9]{30,}+"),
    ("JWT", "eyJ", r"[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]*+(?:\.[A-Za-z0-9_\-]{8,}+){3}"),  # encrypted
    ("JWT", "eyJ", r"[A-Za-z0-9_\-]{8,}+\.eyJ[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]{8,}+"),
    ("Notion token", "secret_", r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{43}"),
    ("npm token", "npm_", r"[A-Za-z0-9]{36}"),
    ("NuGet key", "oy2", r"[a-z0-9]{43}"),
    ("Plaid token", "access-", r"(?:sandbox|development|production)-[a-f0-9]{8}-[a-f0-9\-]{27}"),
    ("PyPI token", "pypi-", r"[A-Za-z0-9_\-]{50,}+"),
    ("Resend key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}+"),
    ("Slack token", "xapp-", r"[A-Za-z0-9\-]{10,}+"),
    ("Slack token", "xox", r"[abceoprs]-[A-Za-z0-9\-]{10,}+"),
    ("Slack token", "xoxd-", r"[A-Za-z0-9%+/=\-]{10,}+"),
    ("Square token", "sq0", r"(?:atp|csp|idp)-[A-Za-z0-9_\-]{22,}+"),
    ("Stripe key", "rk_ sk_", r"(?:live|test|prod)_[A-Za-z0-9]{16,}+"),
    ("Twitter token", "AAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{60,}+"),
    ("xAI key", "xai-", r"[A-Za-z0-9]{40,}+"),
)
# prefixes of tokens alone; what follows is long, holds digits and is not a name
_KNOWN_HEADS = """
    aio_ p8e- AGE-SECRET-KEY-1 LTAI AKCp AKID AQVN ATATT3 ATCTT3 bkua_ cfat_ cfut_ csk- CCIPAT_ CLOJARS_
    CFPAT- crsr_ dckr_ duffel_ e2b_ EZAK EZTK figd_ figo_ FLWSECK fo1_ fio-u- GR1348941 glsa_ HRKU- ico-
    signkey- jina_ lsv2_ lin_api_ lin_oauth_ napi_ nfp_ NRAK- NRII- NRJS- nsec1 ntn_ nvapi- pplx- pcsk_
    pscale_ phx_ PMAK- pnu_ pul- rdme_ rnd_ r8_ rubygems_ xkeysib- sntryu_ shippo_ shpat_ shpca_ shppa_
    shpss_ sqa_ sqp_ squ_ sb_secret_ sbp_ tskey- tvly- tgp_v1_ tfp_ vck_ vcp_ wandb_v1_
"""
_DRAWN = r"(?=(?:[A-Za-z_\-]{0,60}[0-9]){3})[A-Za-z0-9_\-]{20,}+(?:[.=][A-Za-z0-9_\-]{8,}+)*+=?"
_OF_A_HEAD = "API token"

_CRYPT = r"\${1,2}(?:apr1|[1567y]|gy|2[aby]|argon2id?)\${1,2}[./A-Za-z0-9$=,+]{22,}+"  # shadow, htpasswd
_CRYPTS = ("$apr1", "$1", "$5", "$6", "$7", "$y", "$gy", "$2a", "$2b", "$2y", "$argon2i", "$argon2id")

_GITHUB_HEADS = ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_")  # also after a `-`: `old-ghp_...`
_GITHUB = (
    r"(?=[A-Za-z_]{0,40}[0-9])[A-Za-z0-9_]{22,}+"
    r"(?:[A-Za-z0-9_\-]*+\.[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]{8,}+)?"  # of an app: a JWT
)

_WITH_SLASHES = ("ops_eyJ", "ABSK", "fm2_", "glc_", "eyJrIjoi", "sntrys_")
# (kind, text that must be there, the whole pattern): where the form does not begin with a run
_HELD = (
    ("Asana token", "/12", r"(?<![\w/])[0-9]/[0-9]{16}:[a-f0-9]{32}\b"),
    ("Azure secret", "Q~", r"(?<![\w~.\-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}(?![\w~\-])"),
    ("Braintree token", "access_token$", r"access_token\$[a-z]{7,10}\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    ("Discord webhook", "/api/webhooks/", r"(?<=/api/webhooks/)[0-9]{15,20}/[A-Za-z0-9_\-]{40,}+"),
    ("Doppler token", "dp.", r"\bdp\.[a-z]{2,5}\.(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{40,44}\b"),
    ("Dropbox token", "sl.", r"(?<![\w.])sl\.(?:u\.)?[A-Za-z0-9_\-=]{100,}+"),
    ("Dynatrace token", "dt0", r"\bdt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}\b"),
    *(("GitHub token", head, rf"(?<![A-Za-z0-9]){head}{_GITHUB}") for head in _GITHUB_HEADS),
    ("Google key", "AQ.Ab", r"(?<![\w.])AQ\.Ab[A-Za-z0-9_\-]{35,}+"),
    ("Google token", "ya29.", r"(?<![\w.])ya29\.[A-Za-z0-9_\-]{20,}+"),
    ("Google token", "1//0", r"(?<![\w/])1//0[A-Za-z0-9_\-]{30,}+"),
    ("Mapbox token", "sk.eyJ", r"(?<![\w.])sk\.eyJ[A-Za-z0-9_\-]{20,}+\.[A-Za-z0-9_\-]{16,}+"),
    ("SendGrid key", "SG.", r"(?<![\w.\-])SG\.[A-Za-z0-9_\-]{16,}+\.[A-Za-z0-9_\-]{16,}+"),
    ("OpenShift token", "sha256~", r"\bsha256~[A-Za-z0-9_\-]{43}"),
    *(("password hash", f"{name}$", _CRYPT) for name in _CRYPTS),
    ("password hash", "SHA", r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{20,}+={0,2}"),
    ("password hash", "pbkdf2_", r"\bpbkdf2_sha\w{1,6}\$[0-9]{1,9}\$\w{4,64}\$[A-Za-z0-9+/]{20,}+={0,2}"),
    ("password hash", "SCRAM-SHA-", r"SCRAM-SHA-[0-9]{1,3}\$[0-9]{1,9}:[\w+/=]{8,64}\$[\w+/=:]{40,}+"),
    ("Slack token", "xoxe.", r"\bxoxe\.xox[bp]-[A-Za-z0-9\-]{10,}+"),
    ("Slack webhook", "hooks.slack.com/", r"(?<=hooks\.slack\.com/services/)T[A-Z0-9]+/B[A-Z0-9]+/\w+"),
    ("Slack webhook", "hooks.slack.com/", r"(?<=hooks\.slack\.com/workflows/)[A-Z0-9]+/[A-Z0-9]+/\w+/\w+"),
    ("Teams webhook", "/webhookb2/", r"(?<=/webhookb2/)[a-f0-9@\-]{60,80}/\w+/[a-f0-9]{32}/[a-f0-9\-]{36}"),
    ("Telegram token", ":AA", r"(?<![0-9A-Za-z])[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}(?![A-Za-z0-9_\-])"),
    ("Terraform token", ".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{40,}+"),
    ("Twitch token", "oauth:", r"\boauth:[a-z0-9]{30}\b"),
    ("Vault token", "hvb.", r"(?<![\w.])hvb\.[A-Za-z0-9_\-]{20,}+"),
    ("Vault token", "hvr.", r"(?<![\w.])hvr\.[A-Za-z0-9_\-]{20,}+"),
    ("Vault token", "hvs.", r"(?<![\w.])hvs\.[A-Za-z0-9_\-]{20,}+"),
    ("Vault token", "ault", r"(?<![\w.\-/])s\.(?=[A-Za-z]{0,23}[0-9])[A-Za-z0-9]{24}(?![\w.(])"),
    ("Stripe key", "whsec_", r"\bwhsec_[A-Za-z0-9+/=]{16,}+"),
    *(("API key", head, rf"\b{head}[A-Za-z0-9+/=_\-]{{32,}}+") for head in _WITH_SLASHES),
)  # fmt: skip

_OF_RUN = r"[A-Za-z0-9_\-]"
# after what a diff or Markdown puts before it; a shorter word is passed over at its first letter
_RUN = re.compile(rf"(?<!{_OF_RUN})(?={_OF_RUN}{{16}})(?:-|_+)?(?P<run>{_OF_RUN}{{16,}}+)")
_END = r"(?![_\-]*[A-Za-z0-9])"
_BY_WHOLE = (
    re.compile(rf"[a-f0-9]{{32}}-(?:us[0-9]{{1,2}}|[a-f0-9]{{8}}-[a-f0-9]{{8}}){_END}"),  # Mailchimp, Mailgun
    re.compile(  # of a vendor that is not listed: a word that says what it is, then one long run of all sorts
        r"(?:[a-z0-9]{2,12}[_\-]){0,2}(?:[a-z]{0,8}(?:api|key|tok|token|secret|pat|sk|live|prod))[_\-]"
        r"(?:v[0-9]_)?(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])(?=(?:[A-Za-z]*[0-9]){3})[A-Za-z0-9]{24,}+" + _END
    ),
)
"""Forms of a whole run."""


def _by_head() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return the shapes by up to three letters that they begin with."""
    found: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for kind, heads, body in (*_HEADED, (_OF_A_HEAD, _KNOWN_HEADS, _DRAWN)):
        for head in heads.split():
            found.setdefault(head[:3], []).append((kind, re.compile(f"{re.escape(head)}{body}{_END}")))
    return found


_BY_HEAD = _by_head()
_FORMS = tuple(("API key", pattern) for pattern in _BY_WHOLE)
_BY_NEEDLE = compiled(_HELD)


def shaped(text: str) -> Iterator[SecretSpan]:
    """Yield the secrets of known shapes in a text."""
    for run in _RUN.finditer(text):
        start, end = run.span("run")
        shapes = [shape for size in (3, 2, 1) for shape in _BY_HEAD.get(text[start : start + size], ())]
        for kind, pattern in (*shapes, *(_FORMS if end - start >= 28 else ())):
            if (match := pattern.match(text, start)) and not (kind == _OF_A_HEAD and is_name(match[0])):
                yield SecretSpan(start, match.end(), kind)
                break
    yield from (SecretSpan(*match.span(), kind) for kind, match in searched(text, _BY_NEEDLE))


# ---- private keys and other secrets of several lines: whole, clipped, or with line numbers


_EDGE = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# lines of base64 or armour headers, after what `cat -n`, `diff`, `grep -n` or a quote put before them
_GUTTER = r"(?:[ \t]{0,40}+(?:[\w./\-]{0,80}+[:\-])?[0-9]{0,7}+[:|\u2192>+\-]?[ \t]{0,4}+)[\"' ]{0,4}"
_BODY = r"(?:[A-Za-z0-9+/=]{16,}+|=[A-Za-z0-9+/]{4}|(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n]{0,80})"
_ROWS = re.compile(
    rf"(?:(?<![^\n]){_GUTTER}{_BODY})?(?:(?:[ \t\"',]{{0,8}}{BREAK}){{1,4}}{_GUTTER}{_BODY}){{0,400}}+"
    rf"(?:(?:{BREAK}){{1,4}}{_GUTTER}[A-Za-z0-9+/]{{4,76}}={{0,2}}[\"',]{{0,2}}(?=\s|\\|$))?"  # the last one
)
_FILLER = " \t\r\n\\nr\"',+->|0123456789:"  # what may separate the rows from the footer
_SOLID = re.compile(r"[A-Za-z0-9+/=]{32}")  # else it is the name of a key's edges in code, or a placeholder
_MOST = 20_000  # characters of one key: 16,384 bits take 13,000
_PUTTY = re.compile(r"(?<=Private-Lines: )[0-9]{1,3}\s*\n(?:[A-Za-z0-9+/=]{4,}+\s*\n?){1,100}")
_JWK = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s*:\s*\"(?P<secret>[A-Za-z0-9_\-]{22,}+)")
_KIND = "private key"


def blocks(text: str) -> Iterator[SecretSpan]:
    """Yield private keys, and the values of Kubernetes secrets."""
    if "PRIVATE KEY" in text:
        yield from _armoured(text)
    if "Private-Lines: " in text:
        yield from (SecretSpan(*match.span(), _KIND) for match in _PUTTY.finditer(text))
    if '"kty' in text:
        yield from (SecretSpan(*match.span("secret"), _KIND) for match in _JWK.finditer(text))
    if "Secret" in text and ("data" in text or "Data" in text):
        yield from _of_kubernetes(text)


def _armoured(text: str) -> Iterator[SecretSpan]:
    """Yield the text from header to footer of a key; if one is missing, as far as it looks like a key."""
    done = 0
    for edge, after in pairwise([*_EDGE.finditer(text), None]):
        if edge is None or edge.start() < done:
            continue
        start = end = edge.start()
        first, done = done, edge.end()
        if edge[1] == "END":
            start = _body_start(text, first, end)
            end = edge.end() if start < end else start
        elif after is not None and after[1] == "END" and after.start() - edge.end() <= _MOST:
            done = after.end()
            end = done if _SOLID.search(text, edge.end(), after.start()) else start
        elif (rows := _ROWS.match(text, edge.end())) and rows[0]:
            end = rows.end()
        if end > start:
            yield SecretSpan(start, end, _KIND)


def _body_start(text: str, first: int, end: int) -> int:
    """Return where the lines begin that lead to the foot of a key whose head is missing."""
    rows = [one for one in _ROWS.finditer(text, max(first, end - _MOST), end) if one[0]]
    return rows[-1].start() if rows and not text[rows[-1].end() : end].strip(_FILLER) else end


# ---- a Kubernetes Secret: all of its data, in YAML or in JSON

_SECRET = re.compile(r"\bkind[\"']?\s{0,4}:\s{0,4}[\"']?Secret\b")
_DOCUMENT = "\n---"
_DATA = re.compile(rf"(?m)^{GUTTER}(?P<indent>[ \t]*)(?:data|stringData):[ \t]*{BREAK}")
_ENTRY = re.compile(
    rf"{GUTTER}(?P<indent>[ \t]*)[\w.\-]{{1,100}}:[ \t]+[\"']?"
    r"(?P<secret>[^\s\"'|>{<$][^\n\"']{3,4000})[^\n]*\n?"
)
_JSON_DATA = re.compile(r"\"(?:data|stringData)\"\s{0,4}:\s{0,4}\{(?P<inner>[^{}]{1,20000})\}")
_JSON_VALUE = re.compile(r":\s{0,4}\"(?P<secret>[^\"]{4,4000})")


def _of_kubernetes(text: str) -> Iterator[SecretSpan]:
    done = 0
    for line in lines_with(text, "Secret"):
        match = _SECRET.search(text, *line)
        if match is None or match.start() < done:
            continue
        start = max(text.rfind(_DOCUMENT, done, match.start()), done)
        end = text.find(_DOCUMENT, match.end())
        done = len(text) if end < 0 else end
        for data in _DATA.finditer(text, start, done):
            at = data.end()
            while (entry := _ENTRY.match(text, at)) and len(entry["indent"]) > len(data["indent"]):
                yield SecretSpan(*entry.span("secret"), "secret")
                at = entry.end()
        for data in _JSON_DATA.finditer(text, start, done):
            for value in _JSON_VALUE.finditer(text, *data.span("inner")):
                yield SecretSpan(*value.span("secret"), "secret")
