"""Secrets that say by their form what they are: one line a shape.

Prefixes, alphabets and lengths are what the vendors document, and what the rules of the detectors gitleaks
(MIT) and detect-secrets (Apache-2.0) list; the patterns are our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from foldline.core.secrets.span import SecretSpan, lines_with

# (kind, how it begins, one word each, what follows): at the start of a run of letters, digits, `_` and `-`
_HEADED = (
    ("1Password token", "ops_eyJ", r"[A-Za-z0-9+/=_\-]{100,}+"),
    ("Adafruit key", "aio_", r"[A-Za-z0-9]{28}"),
    ("Adobe secret", "p8e-", r"[A-Za-z0-9]{32}"),
    ("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{40,}+"),
    ("Airtable token", "pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{40,}+"),
    ("Alibaba key", "LTAI", r"[A-Za-z0-9]{16,24}"),
    ("Anthropic key", "sk-ant-", r"[A-Za-z0-9_\-]{16,}+"),
    ("API key", "sk-", r"(?=[A-Za-z_\-]{0,200}[0-9])[A-Za-z0-9_\-]{20,}+"),
    ("API key", "sk_", r"[a-f0-9]{40,}+"),
    ("Artifactory key", "AKCp", r"[A-Za-z0-9]{60,}+"),
    ("Atlassian token", "ATATT3 ATCTT3", r"[A-Za-z0-9_\-=]{60,}+"),
    ("Atlassian token", "ATBB", r"[A-Za-z0-9]{24,}+"),
    ("AWS key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}"),
    ("AWS key", "ABSK", r"[A-Za-z0-9+/]{60,}+={0,2}"),
    ("Buildkite token", "bkua_", r"[a-f0-9]{40}"),
    ("Cerebras key", "csk-", r"[a-z0-9]{40,}+"),
    ("CircleCI token", "CCIPAT_", r"[A-Za-z0-9]{10,}+_[a-f0-9]{40}"),
    ("ClickUp token", "pk_", r"[0-9]{5,12}_[A-Z0-9]{32}"),
    ("Clojars token", "CLOJARS_", r"[a-z0-9]{60}"),
    ("Contentful token", "CFPAT-", r"[A-Za-z0-9_\-]{40,}+"),
    ("crates.io token", "cio", r"(?=[A-Za-z]{0,31}[0-9])[A-Za-z0-9]{32}"),
    ("Databricks token", "dapi", r"[a-f0-9]{32}(?:-[0-9])?"),
    ("DigitalOcean token", "doo_v1_ dop_v1_ dor_v1_", r"[a-f0-9]{64}"),
    ("Discord token", "M N O", r"[A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}+"),
    ("Docker token", "dckr_", r"(?:pat|oat)_[A-Za-z0-9_\-]{20,}+"),
    ("Duffel token", "duffel_", r"(?:live|test)_[A-Za-z0-9_\-=]{40,}+"),
    ("E2B key", "e2b_", r"[a-f0-9]{40}"),
    ("EasyPost key", "EZAK EZTK", r"[A-Za-z0-9]{54}"),
    ("Facebook token", "EAA", r"[A-Za-z0-9]{80,}+"),
    ("Figma token", "figd_ figo_", r"[A-Za-z0-9_\-]{36,}+"),
    ("Firecrawl key", "fc-", r"[a-f0-9]{32}"),
    ("Flutterwave key", "FLWSECK", r"(?:_TEST)?-[A-Za-z0-9]{12,}+(?:-X)?"),
    ("Fly token", "fm2_", r"[A-Za-z0-9+/=_\-]{60,}+"),
    ("Fly token", "fo1_", r"[A-Za-z0-9_\-]{40,}+"),
    ("Frame.io token", "fio-u-", r"[A-Za-z0-9_\-=]{64}"),
    ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,}+"),
    ("GitHub token", "github_pat_", r"[A-Za-z0-9_]{22,}+"),
    (
        "GitLab token",
        "gl",
        r"[a-z]{2,5}-[A-Za-z0-9_\-]{16,}+(?:\.[a-z0-9.]{8,20})?",
    ),
    ("GitLab token", "GR1348941", r"[A-Za-z0-9_\-]{20}"),
    ("Google key", "AIza", r"[A-Za-z0-9_\-]{35}"),
    ("Google secret", "GOCSPX-", r"[A-Za-z0-9_\-]{20,}+"),
    ("Grafana token", "glc_", r"[A-Za-z0-9+/=]{32,}+"),
    ("Grafana token", "glsa_", r"[A-Za-z0-9]{32}_[a-fA-F0-9]{8}"),
    ("Grafana token", "eyJrIjoi", r"[A-Za-z0-9+/=_\-]{40,}+"),
    ("Groq key", "gsk_", r"[A-Za-z0-9]{32,}+"),
    ("Heroku key", "HRKU-", r"[A-Za-z0-9_\-]{30,}+"),
    ("HubSpot token", "pat-", r"(?:na|eu)[0-9]-[a-f0-9]{8}-[a-f0-9\-]{27}"),
    ("Hugging Face token", "hf_ api_org_", r"[A-Za-z0-9]{30,}+"),
    ("Infracost key", "ico-", r"[A-Za-z0-9]{32}"),
    ("Inngest key", "signkey-", r"(?:prod|test)-[a-f0-9]{32,}+"),
    ("Jina key", "jina_", r"[A-Za-z0-9_\-]{40,}+"),
    ("JWT", "eyJ", r"[A-Za-z0-9_\-]{8,}+\.eyJ[A-Za-z0-9_\-]{8,}+\.[A-Za-z0-9_\-]{8,}+"),
    ("LangSmith key", "lsv2_", r"(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("Linear key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{32,}+"),
    ("Mailgun key", "key-", r"(?=[a-f]{0,30}[0-9])[a-f0-9]{32}"),
    ("Neon key", "napi_", r"[a-z0-9]{40,}+"),
    ("Netlify token", "nfp_", r"[A-Za-z0-9]{36}"),
    ("New Relic key", "NRAK-", r"[A-Z0-9]{27}"),
    ("New Relic key", "NRII-", r"[A-Za-z0-9_\-]{32}"),
    ("New Relic key", "NRJS-", r"[a-f0-9]{19}"),
    ("Nostr key", "nsec1", r"[a-z0-9]{58}"),
    ("Notion token", "ntn_", r"[A-Za-z0-9]{40,}+"),
    ("Notion token", "secret_", r"(?=[A-Za-z]{0,40}[0-9])[A-Za-z0-9]{43}"),
    ("npm token", "npm_", r"[A-Za-z0-9]{36}"),
    ("NuGet key", "oy2", r"[a-z0-9]{43}"),
    ("Nvidia key", "nvapi-", r"[A-Za-z0-9_\-]{50,}+"),
    ("Perplexity key", "pplx-", r"[A-Za-z0-9]{32,}+"),
    ("Pinecone key", "pcsk_", r"[A-Za-z0-9_]{40,}+"),
    ("Plaid token", "access-", r"(?:sandbox|development|production)-[a-f0-9]{8}-[a-f0-9\-]{27}"),
    ("PlanetScale token", "pscale_", r"(?:tkn|pw|oauth)_[A-Za-z0-9_\-.=]{32,}+"),
    ("PostHog key", "phx_", r"[A-Za-z0-9]{40,}+"),
    ("Postman key", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    ("Prefect key", "pnu_", r"[A-Za-z0-9]{36}"),
    ("Pulumi token", "pul-", r"[a-f0-9]{40}"),
    ("PyPI token", "pypi-", r"[A-Za-z0-9_\-]{50,}+"),
    ("ReadMe key", "rdme_", r"[a-z0-9]{60,}+"),
    ("Render key", "rnd_", r"[A-Za-z0-9]{28,}+"),
    ("Replicate token", "r8_", r"[A-Za-z0-9]{30,}+"),
    ("Resend key", "re_", r"[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}+"),
    ("RubyGems key", "rubygems_", r"[a-f0-9]{48}"),
    ("Sendinblue key", "xkeysib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("Sentry token", "sntrys_", r"[A-Za-z0-9+/=_\-]{40,}+"),
    ("Sentry token", "sntryu_", r"[a-f0-9]{64}"),
    ("Shippo token", "shippo_", r"(?:live|test)_[a-f0-9]{40}"),
    ("Shopify token", "shpat_ shpca_ shppa_", r"[a-fA-F0-9]{32}"),
    ("Shopify secret", "shpss_", r"[a-fA-F0-9]{32}"),
    ("Slack token", "xapp-", r"[A-Za-z0-9\-]{10,}+"),
    ("Slack token", "xox", r"[abeoprs]-[A-Za-z0-9\-]{10,}+"),
    ("SonarQube token", "sqa_ sqp_ squ_", r"[a-f0-9]{40}"),
    ("Square token", "EAAA", r"[A-Za-z0-9_\-]{56,}+"),
    ("Square token", "sq0", r"(?:atp|csp|idp)-[A-Za-z0-9_\-]{22,}+"),
    ("Stripe key", "rk_ sk_", r"(?:live|test|prod)_[A-Za-z0-9]{16,}+"),
    ("Stripe key", "whsec_", r"[A-Za-z0-9+/=]{16,}+"),
    ("Supabase key", "sb_secret_", r"[A-Za-z0-9_\-]{20,}+"),
    ("Supabase token", "sbp_", r"[a-f0-9]{40}"),
    ("Tailscale key", "tskey-", r"[a-z]{3,12}-[A-Za-z0-9]{8,}+-[A-Za-z0-9]{20,}+"),
    ("Tavily key", "tvly-", r"[A-Za-z0-9_\-]{28,}+"),
    ("Tencent key", "AKID", r"[A-Za-z0-9]{32}"),
    ("Together key", "tgp_v1_", r"[A-Za-z0-9_\-]{40,}+"),
    ("Twilio key", "SK", r"[a-f0-9]{32}"),
    ("Twitter token", "AAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{60,}+"),
    ("Typeform token", "tfp_", r"[A-Za-z0-9_\-.=]{40,}+"),
    ("Weights & Biases key", "wandb_v1_", r"[A-Za-z0-9_]{40,}+"),
    ("xAI key", "xai-", r"[A-Za-z0-9]{40,}+"),
    ("Yandex key", "AQVN", r"[A-Za-z0-9_\-]{35,}+"),
)

_CRYPT = r"\${1,2}(?:apr1|[1567y]|gy|2[aby]|argon2id?)\${1,2}[./A-Za-z0-9$=,+]{22,}+"  # shadow, htpasswd
_CRYPTS = ("$apr1", "$1", "$5", "$6", "$7", "$y", "$gy", "$2a", "$2b", "$2y", "$argon2i", "$argon2id")

# (kind, text that must be there, the whole pattern): where the form does not begin with a run
_HELD = (
    ("Asana token", "/12", r"(?<![\w/])[0-9]/[0-9]{16}:[a-f0-9]{32}\b"),
    ("Azure secret", "Q~", r"(?<![\w~.\-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.\-]{31,34}(?![\w~\-])"),
    ("Braintree token", "access_token$", r"access_token\$[a-z]{7,10}\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    ("Discord webhook", "/api/webhooks/", r"(?<=/api/webhooks/)[0-9]{15,20}/[A-Za-z0-9_\-]{40,}+"),
    ("Doppler token", "dp.", r"\bdp\.[a-z]{2,5}\.(?:[a-z0-9_\-]{2,35}\.)?[A-Za-z0-9]{40,44}\b"),
    ("Dropbox token", "sl.", r"(?<![\w.])sl\.(?:u\.)?[A-Za-z0-9_\-=]{100,}+"),
    ("Dynatrace token", "dt0", r"\bdt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}\b"),
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
)  # fmt: skip

# (kind, the whole of a run)
_WHOLE = (
    ("Mailchimp key", r"[a-f0-9]{32}-us[0-9]{1,2}"),
    ("Mailgun key", r"[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}"),
)

_RUN = re.compile(r"[A-Za-z0-9_\-]{16,}+")
_END = r"(?![A-Za-z0-9_\-])"
_GENERIC = re.compile(
    r"(?:[a-z0-9]{2,12}[_\-]){0,2}(?:[a-z]{0,8}(?:api|key|tok|token|secret|pat|sk|live|prod))[_\-]"
    r"(?:v[0-9]_)?(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])(?=(?:[A-Za-z]*[0-9]){3})[A-Za-z0-9]{24,}+" + _END
)
"""A token of a vendor that is not listed: a word that says what it is, then one long run of all sorts."""


class _Shape(msgspec.Struct, frozen=True):
    kind: str
    pattern: re.Pattern[str]


def _headed_rows() -> Iterator[tuple[str, str, str]]:
    yield from ((kind, head, body) for kind, heads, body in _HEADED for head in heads.split())


def _by_head() -> dict[str, tuple[_Shape, ...]]:
    """Return the shapes by up to three letters that they begin with."""
    found: dict[str, tuple[_Shape, ...]] = {}
    for kind, head, body in _headed_rows():
        shape = _Shape(kind, re.compile(f"{re.escape(head)}{body}{_END}"))
        found[head[:3]] = (*found.get(head[:3], ()), shape)
    return found


_BY_HEAD = _by_head()
_BY_WHOLE = tuple(_Shape(kind, re.compile(pattern + _END)) for kind, pattern in _WHOLE)
_BY_NEEDLE = (
    *((needle, _Shape(kind, re.compile(pattern))) for kind, needle, pattern in _HELD),
    # A run ends at the slash or plus that these may hold early.
    *(
        (head, _Shape(kind, re.compile(f"{re.escape(head)}{body}{_END}")))
        for kind, head, body in _headed_rows()
        if len(head) > 2 and ("+/" in body or "/+" in body)
    ),
)


def shaped(text: str) -> Iterator[SecretSpan]:
    """Yield the secrets of known shapes in a text."""
    for run in _RUN.finditer(text):
        if (found := _headed(text, *run.span())) is not None:
            yield found
    for needle, shape in _BY_NEEDLE:
        if needle in text:
            for start, end in lines_with(text, needle):
                for match in shape.pattern.finditer(text, start, end):
                    yield SecretSpan(*match.span(), shape.kind)


def _headed(text: str, start: int, end: int) -> SecretSpan | None:
    for length in (3, 2, 1):
        for shape in _BY_HEAD.get(text[start : start + length], ()):
            if match := shape.pattern.match(text, start):
                return SecretSpan(start, match.end(), shape.kind)
    if end - start >= 28:
        if text[start].isalnum() and _GENERIC.match(text, start, end):
            return SecretSpan(start, end, "API key")
        for shape in _BY_WHOLE if end - start <= 50 else ():
            if shape.pattern.match(text, start):
                return SecretSpan(start, end, shape.kind)
    return None
