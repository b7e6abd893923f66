"""The rules by which a sentence of the user's is a standing constraint. Their list is in docs/ledger.md.

A sentence is one if a rule of any language finds it and no veto does. Quoted text and inline code are
taken out first: they are mentioned, not said.
"""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST = 400
"""Characters beyond which a sentence is a description, not a rule."""

_MENTIONED = re.compile(
    r"`[^`\n]{1,200}`|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|„[^“”\n]{1,200}[“”]|«[^»\n]{1,200}»|「[^」\n]{1,200}」"
)
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")

_CLAUSE = (
    r"(?:^|[.,;:!(\]–—]\s*|\s-\s|"
    r"\b(?:and|but|so|also|please|pls|then|just|or|ok|okay|yes|yeah|no|well|btw|you)\s+)"
)
_VERB = (
    r"(?!\w+(?:ing|ly)\b)(?!(?:think|know|see|mind|worry|bother|understand|believe|care|remember|forget|get|"
    r"have|like|need|"
    r"want|recall|seem|work|exist|even|really|we|you|i|they|it|the|a|this|that)\b)\w+"
)
_THING = r"(?!\s+(?:it|that|this)\b(?!\s+\w+\s))"
_DO = (
    r"(?:use|add|change|touch|modify|edit|write|import|run|commit|push|show|render|return|include|call|log|"
    r"keep|allow|"
    r"ask|test|check|update|document|create|make|put|read|prefer|answer|respond|reply|format|name|work|"
    r"store|send|do|"
    r"raise|throw|catch|handle|support|accept|print|pass|build|deploy|open|delete|remove|start|validate|"
    r"verify|escape)"
)
_MODAL = r"(?:should|must|has to|have to|needs to|need to|may|can|shall|ought to|is to|are to)"
_LANGUAGE = (
    r"(?:english|german|french|spanish|italian|portuguese|"
    r"chinese|japanese|korean|russian|dutch|polish|turkish)"
)

_ENGLISH = {
    "never": rf"{_CLAUSE}never,? (?:ever,? )?\s*(?!mind\b|been\b|had\b|\w+(?:ed|s)\b){_VERB}|"
    rf"\b{_MODAL}\s+never\b|"
    r"\b(?:i|we)\s+never\s+(?:want|use|do|allow|write|commit|push|log|store|import|mock)\b",
    "always": rf"{_CLAUSE}always\s+(?!\w+(?:ed|s)\b)\w+|\b(?:{_MODAL}|will|(?:want|sure|remember|like)(?: "
    rf"you)? to|are|we)\s+always\s+(?!been\b)\w+|"
    rf"{_CLAUSE}{_DO}\b[^,.;]{{0,60}}\balways\b",
    "prohibition": rf"{_CLAUSE}(?:don['’]?t|do not|do never)\s+(?:ever\s+|directly\s+|just\s+)"
    rf"?{_VERB}\b{_THING}",
    "our custom": r"\bwe\s+(?:don['’]?t|do not)\s+(?:want|use|do|write|allow|add|ship|mock|import|log|"
    r"accept|commit|support)\b|"
    r"\bwe\s+(?:want to|try to|like to)\s+(?:avoid|keep|always|never|ensure|make sure)\b|\bwe\s+(?:only|"
    r"exclusively)\s+(?:use|want|support|allow|accept|ship|write)\b|"
    r"\bwe\s+use\b.{1,60}(?:, not\b|\bnot\b|\beverywhere\b|\bin this (?:repo|project|codebase)\b)",
    "i do not want": r"\bi\s+(?:don['’]?t|do not|never)\s+(?:ever\s+)?want\s+(?!it\b|that\b|this\b)|\bi "
    r"want\b.{1,80}\b(?:only|never|always)\b|"
    r"^\W*i want (?:all|every|each)\b|^\W*only (?:i|we)\s+(?!have\b|had\b|see\b|know\b|need\b|did\b)\w+",
    "must": r"\b(?:must not|mustn['’]?t|must (?:only|never|always|remain|stay|keep))\b|"
    r"\bmust\s+(?!have\s+(?:been\b|\w+ed\b)|be\s+(?:the|a|an|some\w*|something|because|due|wrong|right|"
    r"kidding)\b|say\b|admit\b|i\b|"
    r"we\b)(?!.*\bgot\b)\w+",
    "may not": r"\byou (?:may|can)(?: not|not|['’]t) (?!be\b)\w+|\byou may only\b|\bmay (?:only|never)\b|"
    r"\b(?:not|n['’]t|never) (?:be )?(?:allowed|permitted|acceptable)\b|\b(?:forbidden|off[ -]limits|"
    r"prohibited)\b|"
    r"\bis allowed to\b.{0,60}\bonly\b|\bnothing\b.{1,40}\bis allowed\b",
    "should not": r"(?<!there )\bshould (?:only|never|always)\s+\w+|(?<!there )(?<!\bit )(?<!this )(?<!that "
    r")(?<!they )\bshould(?:n['’]?t| not| still not)\s+(?!be\s+(?:too|that) )\w+|"
    r"^\W*only\b[^,.]{1,60}\bshould\b|"
    r"^(?!\W*q:)[^?]{0,60}\bshould (?!be \w+ing)[^,]{1,60}, not\b",
    "every": r"(?<!where )(?<!whether )\b(?:each|every|all|any)\b(?:(?!\b(?:and|but|if|that)\b)[^,.;?])"
    r"{1,60}\b"
    r"(?:should|must|has to|have to|needs?|requires?)\s+\w+|\bfor (?:each|every)\b[^,.]{1,40}\bshould\b|"
    r"\b(?:before|after|in|on|with) (?:each|every)\b.{1,40}, \w+",
    "only": rf"{_CLAUSE}only\s+(?:ever\s+)?{_DO}\b|{_CLAUSE}{_DO}\s+only\b|\buse\b.{{0,40}}\bexclusively\b|"
    r"^\W*only (?!this\b|that\b|then\b|the (?:first|second|last)\b|one\b|two\b|three\b|some\b|a few\b|\d)"
    r"[^,.]{1,40}\b(?:may|(?:is|are) allowed to) (?!have\b|be\b|not\b)\w+",
    "not that but this": rf"{_CLAUSE}(?:use|write|prefer)\b.{{1,60}}, (?:not|never)\b|^\W*(?!ok\b|hmm|yes|"
    rf"no\b|stop\b|wait\b|hey\b|oh\b|sorry\b)[\w ]{{2,30}}, (?:not|never) (?!bad|sure|yet|really|now|that|"
    rf"this|it|working|good)\w+\W*$|"
    r"^\W*(?:all|every|each) (?!good|right|in all|of (?:it|this|that)\b)[^,.]{2,60}\b(?:is|are|goes?|stays?|"
    r"uses?)\b[^,.]{1,40}, never\b|"
    r"^\W*[\w ]{2,30}\bgo (in|into|under) [^,]{1,40}, (?:not|never) \1\b",
    "use for": r"^\W*(?:please )?use (?!the\b|this\b|that\b|an?\b|it\b)[^,.]{2,50}\bfor (?!the\b|this\b|"
    r"that\b|now\b|an?\b|it\b|me\b)\w+|"
    r"^\W*(?:please )?use (?!cases?\b)(?!.*\b(?:is|are|was)\b)[^,.]{1,60} everywhere\W*$",
    "make sure": r"\b(?:make sure|ensure|see to it|be sure)\b.{0,50}\b(?:every|each|all|any|no|never|always|"
    r"not|only|nobody|nothing|"
    r"stays?|remains?|n['’]t)\b",
    "no such thing": r"^(?:(?:and|also|please|but),?\s+)?no\s+(?!need|idea|wait|problem|worries|matter|such|"
    r"one|more\s+\w+\s+found|i|we|you|it|this|"
    r"that|there|revert|remove|keep|let|write|do|don|not|what|why|luck|clue|way|is|wonder|matching|fixes|"
    r"changes|real|longer|rush|thanks)"
    r"[\w.-]+(?:\s+(?!found|applied|available|detected|exist|exists|specified|changed|matched|was|were|is|"
    r"are|has|have)[\w./'-]+){0,9}"
    r"\s*(?:[(,].{0,60})?[.!:)]*$",
    "keep": r"(?:^\W*|[.;:!–—(]\s*|,\s*(?:and |but )?|\b(?:please|also)\s+)(?<!we should also )keep\s+(?!in "
    r"mind|going|this\b|that\b|it\b|on\b|me\b|track\b|them\b|trying|doing|at it|up\b)\w+",
    "avoid": rf"{_CLAUSE}(?:try to )?avoid\s+\w+|\bwe want to avoid\b",
    "prefer": r"^\W*(?:in general,? )?prefer\b|\b(?:i|we|you should)\s+(?:generally |usually |always )"
    r"?prefer\b(?=.*\b(?:over|to|for all|in general|rather|"
    r"instead)\b)",
    "stick to": rf"\bstick(?:ing)? (?:to|with) (?:the|our|this|that|a|existing)\b|{_CLAUSE}follow (?:the|"
    rf"our) \b.{{1,40}}\b(?:style|convention|guide|"
    r"rules|pattern|standards?|guidelines)\b|\bleave\b.{1,40}\b(?:alone|untouched|as (?:it is|is|they are))"
    r"\b|"
    r"\bhands off\b|\b(?:is|are) frozen\b|^\W*(?:please )?(?:stay|keep) (?:away from|out of) (?!it\b|this\b|"
    r"that\b|the way\b)\w",
    "standing": r"\b(?:from (?:now|here|this point) on(?:wards?)?|going forward|at all times|no matter what|"
    r"under (?:no|any) "
    r"circumstances?|without exceptions?|no exceptions|as a (?:general )?rule|the rule (?:is|here)|for the "
    r"rest of)\b|"
    r"^\W*in general,|^\W*in (?:the )?future,|\bthe (?:overriding|general|golden|main|most important) "
    r"(?:directive|rule|principle|constraint|goal) is\b|"
    r"\bit(?:['’]s| is) (?:very |really )?(?:important|essential|crucial|critical|vital) (?:that|to)\b",
    "remember": r"^\W*(?:please )?remember(?::| that| to| we| not)\s|\bkeep (?:that|this) in mind\b",
    "permission": rf"\bwithout (?:my |our )?(?:explicit )?(?:permission|approval|consent|asking|"
    rf"confirmation|telling me|ok\b)|"
    rf"{_CLAUSE}(?:always )?(?:ask|check with|confirm with|tell|warn|notify) (?:me )?(?:first )?before\b|"
    rf"\bask me (?:first|before)\b|"
    r"\b(?:needs?|requires?) my (?:explicit |written )?(?:approval|consent|sign[ -]?off|ok)\W*$",
    "whenever": r"^\W*(?:whenever|every time|each time|any time) you\b.{1,80},\s*(?!i\b|it\b|we\b|the\b)\w+|"
    rf"^\W*(?:when|if) you\b.{{1,80}},\s*(?:(?:please|also|then)\s+)*(?:{_DO}|always|never|make sure)\b|"
    r"^\W*(?:when|if) you\b.{1,80},\s*(?:please\s+)?also\s+(?!i\b|you\b|it\b|we\b|the\b|th(?:is|at)\b)\w+|"
    r"^\W*before (?:you )?(?:commit|push|submit|releas|merg)\w*\b.{0,60},\s*\w+",
    "manner": rf"\b(?:answer|respond|reply|write|speak|talk|communicate|comment)\b.{{0,40}}\bin "
    rf"{_LANGUAGE}\b|"
    r"\b(?:british|american|us|uk) (?:english|spelling)\b|(?<!used )\bthroughout\W*(?:please)?\W*$|"
    r"\b(?:for|in|across) the (?:whole|entire) (?:project|codebase|repo|repository)\b",
    "nothing": r"\b(?:nothing|nobody|no one|none of)\b(?:[^.]|\.(?=\w)){0,40}\b(?:talks?|imports?|calls?|"
    r"touch(?:es)?|writes?|depends?|reads?|uses?|may|should|must|"
    r"goes|gets|leaves)\b",
}  # fmt: skip

_GERMAN = {
    "de never": r"\b(?:niemals|auf keinen fall|unter keinen umständen|keinesfalls)\b|\bnie(?:\s+(?:wieder|"
    r"mehr))?\b(?=.*\b(?:verwenden|benutzen|ändern|"
    r"löschen|nutzen)\b)",
    "de always": r"\b(?:bitte|soll(?:en|te|ten)?|muss|müssen|musst)\b.{0,30}\bimmer\b(?! noch)|^\W*(?:immer|"
    r"\w+e?)\s+immer\b(?! noch)|^\W*immer\s+(?!noch|wenn)",
    "de must not": r"\b(?:darf|dürfen|darfst|soll(?:en|te|ten)?)\b.{0,50}\b(?:nicht|kein\w*|nur|nie)\b|"
    r"^\W*(?:bitte )?(?:nicht|keine?n?)\s+\w+",
    "de only": r"\bausschließlich\b|\b(?:verwende|benutze|nutze|nimm)\b.{0,30}\bnur\b|\bbitte nur\b|"
    r"\bkeine?n? (?:neuen?|weiteren?)\b",
    "de from now on": r"\b(?:ab (?:jetzt|sofort|heute|nun)|von (?:jetzt|nun) an|in zukunft|künftig|"
    r"grundsätzlich|stets)\b|\bachte (?:immer )?darauf\b",
}  # fmt: skip
_FRENCH = {
    "fr never": r"^\W*ne (?:jamais|pas|plus|rien)\s+\w+|^\W*n(?:e |['’])\w+(?:-\w+)*\s+(?:jamais|pas|rien|"
    r"plus|aucun)|\b(?:il )?ne (?:faut|doi(?:t|s|vent)|peut|peuvent|devez)\s+(?:pas|jamais|"
    r"plus)|^\W*(?:jamais|pas) de\b|^\W*(?:s['’]il te pla[iî]t,? )?évite",
    "fr always": r"^\W*\w+(?:s|e|ez|-moi|)\s+toujours\b|\b(?:doi(?:t|s|vent)|devez|faut)\s+toujours\b|"
    r"^\W*toujours\b|\b(?:uniquement|seulement)\b(?=.*\b"
    r"(?:utilis|code|fichier))|\b(?:désormais|dorénavant|à partir de maintenant)\b|"
    r"^\W*utilise[rz]?\s+(?:uniquement|seulement|toujours)",
}  # fmt: skip
_SPANISH = {
    "es never": r"^\W*(?:por favor,? )?(?:nunca|jamás)\s+\w+(?:as|es|e|a)\b|^\W*(?:por favor,? )"
    r"?no\s+(?!es\b|las\b|los\b|estás\b|puedes\b|quieres\b|tienes\b)"
    r"\w{2,}(?:es|as)\b|\bno (?:debe[sn]?|se (?:debe|puede))\b|^\W*evita",
    "es always": r"^\W*(?:por favor,? )?(?:\w+\s+)?siempre\b|\bdebe[ns]?\s+(?:siempre|ser|estar)\b|\b(?:a "
    r"partir de ahora|de ahora en adelante)\b|"
    r"\b(?:usa|utiliza)\s+(?:solo|sólo|únicamente)\b|^\W*(?:usa|responde|escribe)\s+siempre\b",
}  # fmt: skip
_OTHERS = {
    "zh": r"不要|禁止|严禁|不得|绝对不|不允许|不许|不准|必须|务必|一定要|始终|永远|"
    r"以后|今后|从现在(?:开始|起)|统一(?:使用|用)|只(?:能|用|允许|使用|可以)|尽量|尽可能|避免|总是(?:用|使用)|"
    r"请(?:勿|别|保持|始终)|(?:^|[，。；])\s*别(?!的|人)|请用.{1,6}(?:回答|回复)|都(?:要|用|应该?)",
    "ja": r"ないで(?:ください|下さい|ほしい|欲しい)|ては(?:いけ|なら|だめ|駄目)|禁止|必ず|"
    r"常に|絶対に|今後は?|これから(?:は|ずっと)|(?:のみ|だけ)を?使|(?:しない|する|使う|守る)こと|ようにして|べき(?:です|では|でない)|避けて|いつも",
    "ko": r"하지\s*(?:마|말)|반드시|항상|절대|앞으로|만\s*사용|금지|지\s*마세요",
    "ru": r"\bникогда\s+не\b|^\W*(?:всегда|не\s+\w+(?:й|йте|ь|ьте))\b|\b(?:нельзя|обязательно|запрещено|"
    r"отныне|впредь)\b|\bдолж(?:ен|на|но|ны)\s+(?:всегда|быть)",
    "pt, it": r"^\W*(?:nunca|sempre|não\s+\w+[ea]s?\b|non\s+\w+(?:re|are|ere|ire)\b|mai\s+\w+re\b)|\b(?:a "
    r"partir de agora|d['’]ora in poi|usa sempre|use sempre)\b",
}  # fmt: skip

_VETOES = {
    "question": r"^(?!.*\b(?:can|could|would|will) (?:you (?:please )?(?:always|never|only)\b|we (?:please )"
    r"?stick\b)).*[?？]\W*$|吗\W*$|呢\W*$|为什么|怎么|ですか\W*$|ますか\W*$|"
    r"^\W*(?:why|what|how|who|where|when (?:did|does|do|will)|is|are|was|were|do(?! not\b)|does|did|"
    r"am i|has|have (?:you|we)|should (?:i|we)|shall|would|which|q:)\b",
    "request": r"^\W*(?:\w+[, ]+){0,3}(?:can|could|would|will) (?:you|we|i)\b(?!.*\b(?:stick to|always|"
    r"never|from now on|in (?:the )?future)\b)",
    "moment": r"^(?!.*\b(?:never|always)\b)\W*(?:stop|wait|halt|hold on|hey|oh|whoa)\b"
    r"[,! ]|^\W*(?:stopp?|warte|halt|arr[eê]te|"
    r"attends|para|espera)\b[,!]",
    "reports": r"^\W*no (?:[\w-]+ ){1,3}(?:here|there|today|yesterday|so far|from (?:us|me|my side)|on "
    r"(?:my|our) (?:side|end))\W*$",
    "not for good": r"\b(?:yet|for now|right now|this time|at the moment|for the moment|just this once|for "
    r"today|so far|until (?:i|we)|for the time being)\b|"
    r"\bjetzt noch nicht\b|\bnoch nicht\b|\bpas encore\b|\btodavía no\b|先不要|先别|暂时",
    "log or code": r"^\s*(?:[\w./-]+\.\w{1,5}:\d+|\d+\s*[:+|→-]|[>+|│╰─✓✗•]|"
    r"\[(?:\d[\d:., TZ/-]{3,}|INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\]|"
    r"at \S+\(|\{\"|<\w|"
    r"(?-i:INFO|WARN|WARNING|ERROR|DEBUG)\b|Messages?:|--- |=== |\$ |//|/\*|#!)|"
    r"[{};]\s*$|\"\s*:\s*[\"{\[]|=>\s|\(\d+\.\d+s\)|\\n\\n",
    "describes": r"\b(?:(?:is|are|was|were|been|be|but|has|have|had|get|gets)\s+never\b|never\s+(?:said|"
    r"called|asserted|worked|works|shown|displayed|loads?|"
    r"finish(?:ed|es)|reached|committed|happened|used|set|got|ran|saw|seen|gets?|comes?|captured|"
    r"accumulated)\b|"
    r"(?:it|this|that|he|she|page|test|build|app|server)\s+(?:\w+\s+)?(?:always|never|only)\s+\w+s\b|"
    r"don['’]t always\b|not always\b|"
    r"must (?:have been|be (?:the|a|some))\b|consider\b.{0,40}\b\w+ing\b|expected\b.{0,40}\bgot\b|"
    r"docs? says?\b|the (?:error|message|log|output|doc\w*|readme|spec) says?\b)|"
    r"^\W*(?:(?:i|they)\s+always\s+\w+|while this\b)",
    "opinion": r"^\W*(?:\w+\s+){0,4}wondering\b|\bconsider whether\b|^\W*(?:i (?:guess|wonder|suppose|"
    r"assume|thought|noticed|believe)|i'm (?:wondering|considering|thinking)|maybe|perhaps|so wondering)\b|"
    r"^\W*i (?:don['’]?t|do not) (?:think|know|understand|see|get|like|believe|remember|have|need)"
    r"\b(?!.*\b(?:should|must)\b)",
    "settled": r"^\W*(?:no|nah|nope|hmm+|ah)\b[, ]+(?!.*\b(?:always|never|must)\b)(?:it|that|this|i|we|"
    r"don['’]?t (?:set|do)|revert|remove|wait)\b|^\W*never ?mind\b|"
    r"^\W*sorry\b|\bcommon (?:pitfalls|mistakes)\b",
}  # fmt: skip


def _compiled(
    *tables: dict[str, str], flags: re.RegexFlag = re.NOFLAG
) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(text, flags)) for table in tables for name, text in table.items())


_NEEDED = {
    "never": ("never",),
    "always": ("always",),
    "prohibition": ("don", "do not", "do never"),
    "must": ("must",),
    "should not": ("should", "only"),
    "every": ("every", "each", "all", "any"),
    "only": ("only", "exclusively"),
    "not that but this": (", not", ", never"),
    "keep": ("keep",),
    "avoid": ("avoid",),
    "prefer": ("prefer",),
    "stick to": ("stick", "follow", "leave", "hands off", "frozen", "stay", "keep"),
    "remember": ("remember", "keep th"),
    "permission": ("without", "before", "ask me", " my "),
    "manner": ("in ", " english", " spelling", "throughout", "for ", "across "),
    "nothing": ("nothing", "nobody", "no one", "none of"),
}
"""What each of these rules needs: a sentence without any of its words, lower case, cannot match."""
_NOT_LATIN = frozenset(["zh", "ja", "ko", "ru"])
"""Rules that no sentence of ASCII alone can match."""


_WEAK = frozenset(["make sure", "keep", "every", "must", "should not", "not that but this", "nothing"])
"""Rules whose words also stand in single tasks and in descriptions: these need a short, plain sentence."""
_WEAK_LONGEST = 220
_SINGLE_TASK = re.compile(
    r"^\W*(?:(?:like|please|also|and|then|ok|okay|now|yes|so|but|next|first)\b,?\s*)*(?:let['’]?s\s+)?"
    r"(?:run|rerun|start|stop|send|call|update|move|review|fix|add|change|resume|implement|remove|rename|"
    r"refactor|merge|revert|find|look|read|go|create|"
    r"check|replace|restore|rerun|try|explain|tell|show|investigate|consider|propose|compare|can|could)\b"
    r"|^\W*(?:if the|since|while|because|although|for example|e\.g\.|as|given|currently|the current|in this "
    r"case)\b"
    r"|\s->\s",
    re.IGNORECASE,
)

# The rules are for lower-case text: to match without regard to case takes twice as long.
RULES = _compiled(_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _OTHERS)
VETOES = _compiled(_VETOES, flags=re.IGNORECASE)


@lru_cache(maxsize=1_024)
def rule_of(sentence: str) -> str | None:
    """Name the rule that makes a sentence a standing constraint, or None where none does or a veto stands."""
    if not 6 <= len(sentence) <= LONGEST:
        return None
    said = _EMPHASIS.sub("", _MENTIONED.sub("CODE", sentence)).strip()
    plain = len(said) <= _WEAK_LONGEST and not _SINGLE_TASK.search(said)
    lowered, latin = said.lower(), said.isascii()
    found = next(
        (
            name
            for name, pattern in RULES
            if (plain or name not in _WEAK)
            and can_match(name, lowered, latin=latin)
            and pattern.search(lowered)
        ),
        None,
    )
    vetoed = found is not None and any(pattern.search(said) for _, pattern in VETOES)
    return None if vetoed else found


def can_match(rule: str, lowered: str, *, latin: bool) -> bool:
    """Whether a sentence has what a rule needs: a look at it costs far less than the rule does."""
    needed = _NEEDED.get(rule)
    return not (latin and rule in _NOT_LATIN) and (needed is None or any(word in lowered for word in needed))


def is_constraint(sentence: str) -> bool:
    """Whether a sentence of the user's states what must always or never hold."""
    return rule_of(sentence) is not None
