"""What the wording of a sentence says: that it is a standing rule, or that it changes one.

A sentence is a rule if a cue of its language finds an order, a ban or a permission that holds for good, and
nothing says that it is a question, a report, a thought or of the moment. A rule that is missed still stands
in the conversation; a wrong one is obeyed. So "don't push", "no errors in the log", "the list must be sorted"
are none: they are as often of one task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal

import msgspec

SHORTEST, LONGEST = 6, 320  # characters of a sentence that is read: a longer one describes

_PARTS: Final = {
    "start": r"^\W*(?:(?:and|also|please|pls|ok|okay|so|but|btw|just|yes|well|fine|actually|now|sorry|in "
    r"general|as of now|from (?:now|here) on|after all)\b[\s,:;.!–—-]*)*",
    "here": r"(?:<start>|[.;!]\s+(?:please )?)",
    "clause": r"(?:<here>|[],:(–—]\s*(?:(?:and|but|so|please|or) )*|\b(?:and|but|or|please) )",
    "past": r"(?:\w+ed|been|got|had|saw|seen|did|was|were|went|came|made|said|told|found|knew|ran|wrote|"
    r"took)\b",
    "it": r"(?:it|that|this|them|these|those|me|us|you|we|i|they|there)\b",
    "one": r"(?:<it>|(?:the|an?|one|both|my|your|our|his|her|its)\b)",
    "kind": r"(?!(?:<one>|(?:he|she|what|which|who|if|when|why|how|as|is|are|was|maybe|then|some|two|"
    r"here)\b))",
    "do": r"(?:use|add|change|touch|edit|write|import|run|commit|push|show|return|include|call|log|allow|"
    r"ask|test|update|document|create|make|put|read|answer|respond|reply|format|name|store|send|do|tell|"
    r"print|deploy|open|delete|remove|start|verify|accept|support|speak|keep|bump|stop|check)\b",
    "tongue": r"(?:english|german|french|spanish|italian|portuguese|chinese|japanese|korean|russian|danish|"
    r"dutch)\b",
    "outcome": r"(?:errors?|warnings?|changes?|results?|output|diff\w*|issues?|problems?|response|success|"
    r"fail\w*|crash\w*|conflicts?|luck|fehler|ahnung|erreurs?|problèmes?|errores|problemas?)\b",
    "finite": r"(?:is|are|was|were|has|have|had|does|did|ran|came|left|found|here|there|<it>|\w\w+ed\b)",
    "bitte": r"^\W*(?:bitte )?",
    "order": r"<bitte>(?!(?:ich|du|er|sie|es|wir|ihr|man|der|die|das|den|ein|eine|mein|dein|hier|da|so|wer|"
    r"was|wie|habe?|bin|war|waren|kam|sah|und|aber|auch|jede\w*|alle)\b)(?:\w+e|\w+[^\Wteaou\d]) (?:bitte "
    r")?",
    "ruling": r"(?:rules?|constraints?|requirements?|restrictions?|ban|limits?|instructions?|conventions?|"
    r"thing)\b",
    "forget": r"(?:forget|ignore|drop|lift|disregard|scrap)\b",
    "new": r"\b(?:now|again|after all|from (?:now|here) on|any ?more)\b",
    "turning": r"\b(?:actually|instead|rather than|after all|no longer|any ?more|stattdessen|nicht mehr|"
    r"plutôt|mejor|switch (?:back )?to)\b|^\W*we(?= now use\b| use\b.*\bnow\W*$)|改用|改成|改为|やっぱり",
    "announcing": r"<start>(?:change of (?:plans?|mind)|new (?:rule|limit|plan|convention)|correction|"
    r"update|scratch that|i(?:['’]ve| have)? changed my mind|neue regel|korrektur|changement de plan|"
    r"nouvelle règle|cambio de planes?|nueva regla)\s*[:,;.!–—-]+|^\W*(?:新规则|更正|変更|訂正|"
    r"新しいルール)\s*[:：,，、。]",
    "question": r"[?？]\W*$|[吗呢]\W*$|为什么|怎么|ますか|^\W*(?:(?:ok|okay|so|and|but),? )*(?:why|what|"
    r"how|who|where|is|are|was|were|do (?:i|we|you|they|the)|does|did|am i|has|have (?:you|we)|should (?:i|"
    r"we)|would|could|can|will|which|warum|wieso|pourquoi|por qué)\b",
    "moment": r"\b(?:yet|for now|right now|this (?:time|once|one time)|(?:for|at) the moment|(?:just|only) "
    r"once|until|(?<!as of )(?<!from )today|tonight|noch nicht|nur heute|diesmal|pas encore|cette fois|"
    r"todavía no|esta vez)\b|先不要|先别|暂时|这次|今回",
}
"""Parts of patterns, by their name in angle brackets. All patterns are for lower case."""


def _compiled(*choices: str) -> re.Pattern[str]:
    pattern = "|".join(choices)
    while (filled := re.sub(r"<([a-z]+)>", lambda part: _PARTS[part[1]], pattern)) != pattern:
        pattern = filled
    return re.compile(pattern)


_CUES: Final = {
    "never, always": _compiled(
        r"<clause>(?:do )?never,? (?:ever )?(?!mind\b|again\b|<past>)\w+|<start>(?:we never (?!<past>)|i "
        r"never want )\w",
        r"<clause>always (?!<one>|<past>|when\b|same\b|\w+s\b)\w+",
        r"\b(?:should|must|may|shall|will|let['’]?s|to) (?:never|always) \w+",
        r"^\W*(?!<it>)[^,.;:?]{3,60} (?:must|ha(?:s|ve) to) (?:stay|remain|never|always|only) \w+",
    ),
    "ban": _compiled(
        r"<here>(?:don['’]?t|do not|dont) (?:ever |directly )?(?!(?:think|know|see|mind|worry|bother|"
        r"believe|care|remember|forget|get|have|like|need|want|wait|overthink|even|really|just|let)\b|"
        r"<one>)\w+ (?!(?:anything|everything)(?! (?:as|else|in|outside|under)\b)|(?:<it>|so\b|again\b|"
        r"now\b|here\b))\S",
        r"\byou (?:may not|must ?n['’]t|must not|may only|are(?: not|n['’]t| only) allowed) (?!be\b|have\b|"
        r"see\b)\w+",
        r"\b(?:is|are) (?:not allowed|forbidden|banned|prohibited|off[ -]limits|mandatory|taboo)\b",
    ),
    "every": _compiled(
        r"<start>(?:all|every|each|any|everything|nothing|nobody|no one|none of)\b(?! (?:of "
        r")?<one>)(?:(?!\b(?:that|which|and|but)\b)[^,.;:?]|\.(?=\w)){1,70}\b(?:must|should|may|ha(?:s|ve) "
        r"to|needs?|requires?|(?:is|are) allowed to) (?!\w+ing\b|work\b|pass\b|now\b)\w+",
        r"<start><kind>(?!(?:no|only)\b)[^,.;:?]{0,40}\w\ws\b[^,.;:?]{0,30}? (?:must|may (?:not|only)|"
        r"should(?: not|n['’]t)) (?!have (?:been|\w+ed)\b)\w+",
    ),
    "only, no": _compiled(
        r"<here>only (?:ever )?<do>|<start><do> [^,.;?]{2,40} only\W*$|<start>only i (?!have|had|see|know|"
        r"need|did)\w+",
        r"<start>only (?!<it>|(?:one|two|some|then)\b)[^,.?]{1,40}\b(?:may|can|should) (?!have\b|be\b)\w+",
        r"<start>no (?:more than )?(?!<do>|(?:the|just|not|what|why|let|more|but|idea|clue|way|need|longer|"
        r"such|matter|worries|rush|wonder|thanks|reason)\b)(?!.*\b(?:<outcome>|<finite>))[\w./'-]+(?: "
        r"[\w./'-]+){0,9}[.!]*$",
    ),
    "keep, avoid": _compiled(
        r"<here>keep (?!<one>|(?:all|going|on|up|in|track|an|old|new|first|last|user|\w+ing)\b)\w+ \w",
        r"<here>keep (?:the|your|our|my) [^,.?]{2,60} (?:under|below|within|at most|at|above|in (?:sync|"
        r"step)) \S",
        r"<here>(?:try to )?avoid (?!<one>)\w+|\b(?:we want to avoid|refrain from|steer clear of|hands "
        r"off)\b",
        r"<here>prefer (?!to\b|the\b(?!.*\bover\b))\w+|<start>(?:i|we)(?: \w+ly)? prefer\b.*\b(?:over|"
        r"rather than)\b",
        r"<here>stick (?:to|with) (?!<it>)\w+|<here>treat .{2,50}\bas\b|<here>leave [^,?]{2,50} (?:alone|"
        r"untouched)\b",
        r"<here>follow (?:the|our|my) [^,.?]{0,40}\b(?:style|conventions?|guides?|guidelines|rules|"
        r"standards?)\b",
    ),
    "for good": _compiled(
        r"\b(?:from (?:now|here|this point) on|going forward|under (?:no|any) circumstances|no matter what|"
        r"(?:no|without) exceptions?|for the rest of (?:this|the|our)|at no (?:point|time)|whatever you "
        r"do)\b",
        r"<start>(?:as a (?:general )?rule|in (?:the )?future|remember(?: that\b|[:,]))\W",
        r"\bit(?:['’]s| is) (?:very |really )?(?:important|essential|crucial|vital) that\b",
        r"<start>we (?:do not|don['’]?t|only) <do> (?!<one>)\w|<start>i (?:don['’]?t|do not) want (?:to "
        r"see )?any\b",
        r"<start>(?:make sure|ensure)\b(?: that)? (?:no\b(?! <outcome>)|nothing|nobody|[^,.?]{1,40} "
        r"(?:never|always|stays?)) ",
    ),
    "whenever": _compiled(
        r"<start>(?:whenever|(?:every|each|any) time|when(?= you \w+ (?:an?|any)\b)|before(?= (?:you "
        r")?(?:commit|push|merg|delet|deploy|releas|answer)| you \w+ (?:an?|any\w*)\b| (?:every|each|"
        r"any)\b)|after(?= (?:every|each|any)\b))(?! (?:i|we|it|the)\b)[^,?]{2,80}, (?!<one>)\w+",
        r"<start>(?:this is |here is )?(?:(?:an?|one|my|another|important|more|new|general|standing) "
        r")*(?:rule|constraint): \w",
        r"\bwithout (?:(?:my|our) (?:\w+ )?(?:permission|approval|consent|ok)\b|asking\b)|\bask (?:me "
        r")?first\b",
        r"<clause>(?:ask|check with|tell|warn|confirm with)(?: me| us)?(?: first)? before\b",
        r"\b(?:needs?|requires?) (?:my|our|an?|\w+['’]s?)(?: \w+['’]?s?){0,2} (?:approval|consent|"
        r"permission|sign-?off)\b",
    ),
    "manner": _compiled(
        r"<here>(?:answer|reply|respond|speak|talk)\b(?! to\b)[^,.?]{0,30}\b(?:in )?<tongue>|\b(?:british|"
        r"us) spelling\b",
        r"<start>(?:use )?at most \w+ [^,.?]{2,50}\b(?:per|in each|for (?:one|each|every))\b",
        r"<here>write (?!<one>)[^,.?]{0,40}\bin (?:<tongue>|the (?:imperative|present|past)\b)|\bbritish "
        r"english\b",
        r"\byour (?:answers|replies) (?:should|must)\b|<here>(?:answer|reply|respond) (?:briefly|in (?:at "
        r"most|short|one|two))\b",
        r"<start>use (?:[\w-]+ )?(?:tabs|spaces|quotes|units|utc|\w*npm|yarn|uv|versioning|hints|"
        r"\w+_case)\b(?: \w+){0,2}\W*$",
        r"<here>use (?!<one>|(?:option|what\w*|cases?)\b)(?:[^,.?]{1,60},? (?:not|never|instead of) \w+|"
        r"[^,.?]{1,40} everywhere\b|(?!.*\b(?:is|are|was)\b)[^,.?]{2,40} for (?!<one>|"
        r"now\b)\w+[^,.?]{0,30}\W*$)",
    ),
    "german": _compiled(
        r"<order>(?:nie(?:mals)?|immer(?! noch)|stets|ausschließlich|keine?n? (?:neue|weitere|fremde|"
        r"global)\w*)\b",
        r"<order>(?:d(?:ie|en|as)|(?:mein|unser|kein)\w*)\b.{0,60}\bnicht (?:an|ab|auf|aus|um|weg|zu)\W*$",
        r"<bitte>(?:nie(?:mals)?|immer|stets|auf keinen fall) (?!noch\b)(?!.*\bwird\b).*(?:en|ln|rn)\W*$",
        r"<bitte>keine? (?!.*\b(?:<outcome>|(?:ist|sind|war|hat|haben|mehr)\b))[\w.-]+(?: "
        r"[\w.-]+){0,6}[.!]*$",
        r"^(?!\W*(?:ich|das|es)\b).*\b(?:darf|dürfen|darfst)\b.{0,50}\b(?:nicht|kein\w*|nur|nie(?:mals)?)\b",
        r"\b(?:bitte (?:immer|nie|keine?n?) \w+|ab (?:jetzt|sofort|heute|nun)|in zukunft|künftig|"
        r"grundsätzlich)\b",
        r"^\W*(?:jede[rsmn]?|alle|nur|vor jede[rmn]) .{2,60} (?:muss|müssen|darf|dürfen|braucht|brauchen)\b",
        r"<bitte>(?:antworte|schreib|sprich)\w*\b.{0,30}\bauf (?:deutsch|englisch)\b|\bfrag\w* (?:mich|"
        r"erst)\b.{0,30}\bbevor\b",
        r"<bitte>(?:verwende|benutze|nutze|nimm)\b.{0,50}\b(?:nur|statt|ausschließlich)\b|\bohne (?:meine|"
        r"unsere) ",
    ),
    "french": _compiled(
        r"^\W*(?:ne (?:jamais|pas|plus|rien) \w+|n(?:e |['’])(?!marche|fonctionne|sais|est\b|ai?\b)[\w-]+ "
        r"(?:jamais|pas|rien|plus|aucun\w*)\b)|\bne (?:faut|doi(?:t|s|vent)|devez) (?:pas|jamais|plus)\b|"
        r"\binterdit\w*\b",
        r"^\W*(?!l[ea]s?\b|il\b|elle\b|ça\b|je\b)\w+(?:s|e|ez)(?:-moi)? toujours\b|^\W*toujours \w+er\b|"
        r"\bdésormais\b",
        r"^\W*évite[rz]?\b|^\W*pas (?:de |d['’])(?!.*\b<outcome>)[\w-]+|\bdemande[zr]?(?:-(?:moi|"
        r"nous))?\b.{0,15}\bavant\b",
        r"^\W*(?:chaque|tous les|toutes les|seule?s?) .{2,60}\b(?:doi(?:t|vent)|peu(?:t|vent))\b|\bfaut "
        r"toujours\b",
        r"^\W*(?:réponds|écris|parle)\w*\b.{0,20}\ben (?:français|anglais)\b|^\W*utilise[rz]? .{2,40}, "
        r"(?:pas|jamais)\b",
    ),
    "spanish": _compiled(
        r"^\W*(?:(?:nunca|jamás) \w+[ea]s?\b|no (?!es\b|las\b|los\b|estás|puedes|quieres|tienes|"
        r"sabes)\w+[ea]s\b)",
        r"\bno debe[sn]?\b|\bprohibid[oa]\b|\ba partir de ahora\b|^\W*evita\b|^\W*usa (?:.{2,40}, no|\w+ "
        r"para) \w+",
        r"^\W*(?:siempre (?=usa|responde|escribe|ejecuta|haz|pregunta)\w+|(?:usa|responde|escribe|haz|"
        r"pregunta) siempre)\b",
        r"^\W*(?:solo|sólo|únicamente|cada|tod[ao]s l[ao]s) .{2,60}\b(?:pueden?|deben?)\b|"
        r"\bpregúntame\b.{0,15}\bantes\b",
        r"^\W*(?:responde|escribe|habla)\b.{0,20}\ben (?:español|inglés)\b",
    ),
    "chinese": _compiled(
        r"(?:不要|切勿|请勿)(?!担心|着急)|禁止|严禁|不得|不许|不准|不允许|绝不|绝对不|永远不|"
        r"(?<!你)(?:必须|务必)|始终|避免",
        r"(?:以后|今后)[^，。]{0,10}(?:用|要|都|请|不)|只(?:能|允许)|只有.{1,12}(?:可以|能|才)|用(?:中|英|"
        r"日)文(?:回答|回复|写)|先问我",
    ),
    "japanese": _compiled(
        r"ないで(?:ください|下さい)|ては(?:いけ|なら)|禁止|必ず(?!.*(?:失敗|エラー|ます。?$))|"
        r"必ず.*ください|常に|絶対に|今後|ないこと",
        r"ようにして|避けて|語で(?:答え|回答|書い|お願い)|だけが.*でき|前に.{0,8}(?:確認|聞い)",
    ),
    "russian": _compiled(r"\bникогда не \w+[йи]\b|^\W*всегда \w+[йи]\w*|\b(?:нельзя|запрещено)\b"),
}
_NO_RULE: Final = _compiled(
    r"<question>|<moment>|\b(?:i (?:think|guess|wonder|might|may|could|must)|maybe|perhaps|probably|not "
    r"sure|seems?|would be|(?:this|that|it) should never)\b",
    r"\b(?:tomorrow|yesterday|by (?:\d|noon|the end|(?:mon|tues|wednes|thurs|fri)day)|let me know|in this "
    r"(?:pr|commit|step)|heute|hoy|sorry|says?)\b|, (?:but )?just \w+|[{};:]\s*$|=>",
    r"^\W*(?:(?:<it>|the [\w-]+) (?:<past>|is|are|isn['’]t|doesn['’]t|always)\b(?! (?:not )?(?:allowed|"
    r"forbidden|banned|off|only|(?:an )?important)\b)|(?:i always|ich|je|yo|no (?:sé|entiendo|quiero|puedo|"
    r"hay|tengo|funciona|se puede))\b|(?:stopp?|hey|halt|warte)[,!]|wait\b)",
    r"^\s*(?:[\w./-]+\.\w{1,5}:\d+|\d+\s*[:+|→]|[>+|│╰─✓✗•#$<]|at \S+\(|npm \w+ |//|/\*|[\w.]*(?:error|"
    r"exception|warn(?:ing)?|info|fatal)\b(?: \[\w+\])?: )",
)
_MENTIONED: Final = re.compile(
    r"`[^`\n]{1,200}`|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|„[^“”\n]{1,200}[“”]|«[^»\n]{1,200}»|"
    r"「[^」\n]{1,200}」"
)
_EMPHASIS: Final = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")


@lru_cache(maxsize=1_024)
def cue_of(sentence: str) -> str | None:
    """Name the cue that makes a sentence of the user's a standing rule; None where there is none."""
    if not SHORTEST <= len(sentence) <= LONGEST:
        return None
    said = _EMPHASIS.sub("", _MENTIONED.sub("code", sentence)).strip().lower()
    return None if _NO_RULE.search(said) else next((n for n, cue in _CUES.items() if cue.search(said)), None)


def is_rule(sentence: str) -> bool:
    """Whether a sentence of the user's states what must always or never hold."""
    return cue_of(sentence) is not None


# ---- what a sentence bans

_CLAUSE: Final = re.compile(
    r"[,;:–—、，；：]+|(?=\b(?:without|unless|until|before|but|ohne|bevor|sans|sin)\b)"
)
_BANS: Final = _compiled(
    r"\b(?:never|no|not|none|nothing|nobody|cannot|dont|forbidden|banned|prohibited|off[ -]limits|taboo|"
    r"avoid|refrain|nie|niemals|nicht|keine?[nmrs]?|verboten|pas|jamais|interdit\w*|évite[rz]?|nunca|jamás|"
    r"prohibid[oa]s?|evita|нельзя|никогда|не|запрещено)\b|n['’]t\b|[不别勿]|禁止|严禁|避免|"
    r"ないで|ないこと|ては(?:いけ|なら)|避けて",
)
_ASKS: Final = _compiled(
    r"^\W*(?:always|only|instead|rather|just|without|unless|until|before|but|ohne|bevor|sans|sin|<do>)"
)


def clauses(sentence: str) -> Iterator[tuple[str, bool]]:
    """Yield the clauses of a sentence, and whether each bans what it is about.

    A ban extends over commas, until something is asked for: "no tabs, no spaces", "never a, b or c".
    """
    bans = False
    for clause in _CLAUSE.split(sentence.lower()):
        bans = bool(_BANS.search(clause)) or (bans and not _ASKS.search(clause))
        yield clause, bans


# ---- what a sentence changes

_CHANGES_NOTHING: Final = _compiled(
    r"<question>|<moment>|\b(?:debug|investigate|look into|find out|please (?:fix|look)|fix (?:it|this|"
    r"that)|broken?|bugs?|crash\w*|fail\w*|errors?|stopped|since|can['’]?t|cannot|(?:is|are|was|were|did|"
    r"has|have)(?: not|n['’]t) \w+|says?|on my (?:laptop|machine)|i will tell|wait|arréglalo|kann|(?:not|"
    r"n['’]t) say|(?:never|not|n['’]t) (?:ever )?<forget>)\b",
)
_ANNOUNCES: Final = _compiled("<announcing>")
_ADDS: Final = _compiled(r"\b(?:also|either|too|as well|additionally|auch|aussi|también)\b|也")
_NEW: Final = _compiled("<new>")
_PERMITS: Final = _compiled(
    r"<start>(?:you(?:['’]re| are)? (?:now )?(?:may|can|allowed to|free to)|feel free to|(?:it|"
    r"that)(?:['’]s| is) (?:ok|okay|fine|allowed)(?: now)? to) (?!see|find|tell|imagine|not|now see)\w",
    r"[^,;?]{2,60} (?:is|are) (?:now |again )?(?:allowed|permitted)\b|[^,;?]{2,60} may (?:now )?be \w+",
    r"<start><kind>(?:\w+ing\b[^,;?]{0,60}|[\w -]{2,40}s(?: in [\w ]+)?) (?:is|are) (?:now )?(?:ok|okay|"
    r"fine)\b",
)
"""What permits: it lifts a rule where the sentence also says that this is new."""
_LIFTS: Final = _compiled(
    r"\bno longer (?:needs?|ha(?:ve|s) to|appl(?:y|ies)|required|necessary|forbidden)\b|\bi (?:take back|"
    r"lift|withdraw)\b",
    r"<start>(?:you )?do(?: not|n['’]t) (?:need|have) to\b|\bdo(?:es)?(?: not|n['’]t) (?:need|"
    r"require)\b.*\bany ?more\b",
    r"\bno need to\b|\bneed(?: not|n['’]t)\b.*\bany ?more\b|<start><forget>.{0,60}\b(?:<ruling>|about\b|"
    r"said\b)",
    r"\b<ruling>.{0,50} (?:is|are) (?:now )?(?:lifted|gone|dropped|withdrawn|void|off)\b",
    r"\bdu (?:darfst|kannst) (?:jetzt|nun|wieder)\b|\b(?:ist|sind) (?:jetzt|nun|wieder) erlaubt\b|"
    r"\bmüssen\b.*\bnicht mehr\b",
    r"\b(?:musst|brauchst?)\b.*\bnicht mehr\b|\b(?:tu peux|vous pouvez) (?:maintenant|désormais)\b|\bplus "
    r"besoin de\b",
    r"\b(?:ya|ahora(?: ya)?) (?:puedes|se permite)\b|\bya no (?:hace falta|tienes que)\b|"
    r"现在(?:开始)?可以(?!看)|不(?:用|必|需要)再",
    r"取消.{0,12}(?:规则|限制|要求)|もう.{0,40}(?:いいです|いいよ|構いません|かまいません|"
    r"必要(?:は)?(?:ない|ありません))",
)
_LIFTED: Final = _compiled(
    r"\b<ruling> (?:about|on|for|of|that|with) ([^;,.!?]+?)(?: no longer| is\b| are\b|$|[;,.!?])|\babout "
    r"(?:the )?([^;,.!?]+)",
    r"\b<forget> (?:the|that|this|my) (.{2,40}?) <ruling>|^(.{2,40}? <ruling>.{0,50}?) (?:is|are) \w+",
)
"""What a sentence that lifts says it lifts: "forget the rule about 3 sentences"."""
_WAIVES: Final = _compiled(
    r"\b(?:need(?:s|n['’]t)?|ha(?:ve|s) to|required|necessary|müssen|musst|brauchst?|besoin|hace falta|"
    r"tienes que)\b|不(?:用|必|需要)再|必要",
    r"<start><forget>(?!.*\b(?:<ruling>|said\b))",
)
"""What lifts a duty alone: that a thing need not be done ends no ban."""
_TURNS: Final = _compiled("<turning>")
_DISPLACES: Final = _compiled(
    r"\b(?:instead of|rather than|statt|au lieu d[eu']|en (?:lugar|vez) de) (.{2,60})"
)
_ORDERS: Final = _compiled(
    r"<start>(?:let['’]?s |we(?:['’]ll| will| now)? |switch|go (?:with|back)|set|squash|<do>|don['’]?t|do "
    r"not|(?:nimm|nutze|verwende|antworte|schreib|utilise|réponds|usa|responde|mejor)\w*\b)|用|してください"
)
_HEDGES: Final = _compiled(
    r"\b(?:if|when|once|unless|except|but|while|as long as|provided|only|because|for the (?:\w+ "
    r")?(?:release|hotfix|demo)|no need to(?!.*any ?more)|wenn|außer|aber|si|sauf|salvo|pero)\b|如果|除非|"
    r"但|場合|ただし"
)
_OF_CHANGE: Final = _compiled(
    r"<announcing>|<turning>|<new>|\b(?:<forget>|fine|allowed|permitted|lifted|gone|dropped|free|feel|take "
    r"back|said|required|necessary|unlimited|maintenant|ahora)\b|\b(?!thing)<ruling>|现在|取消"
)


class Change(msgspec.Struct, frozen=True):
    """How a sentence changes rules: it adds to them, lifts one, turns one around or announces that it does.

    `said` is the sentence in lower case, without the words that tell so; `lifted` what it says it lifts;
    `displaced` what it puts another thing in the place of; `hedged` holds where a condition limits it,
    `waives` where it says that something need not be done.
    """

    kind: Literal["none", "adds", "lifts", "turns", "announces"]
    said: str
    lifted: str = ""
    displaced: str = ""
    hedged: bool = False
    waives: bool = False


@lru_cache(maxsize=1_024)
def change_of(sentence: str) -> Change:
    """Read whether and how a sentence of the user's changes a rule that was said before it."""
    text = sentence.lower()
    if len(text) > LONGEST or _CHANGES_NOTHING.search(text):
        return Change("none", text)
    said, hedged = _OF_CHANGE.sub(" ", text), bool(_HEDGES.search(text))
    displaces = _DISPLACES.search(text)
    displaced = displaces[1] if displaces else ""
    if _ANNOUNCES.search(text):
        return Change("announces", said, "", displaced, hedged)
    if _ADDS.search(text):
        return Change("adds", text)
    if _LIFTS.search(text) or (_NEW.search(text) and _PERMITS.search(text)):
        found = _LIFTED.search(text)
        about = next(filter(None, found.groups()), "") if found else ""
        return Change("lifts", said, about, "", hedged, bool(_WAIVES.search(text)))
    if (_TURNS.search(text) or displaced) and (_ORDERS.search(text) or is_rule(sentence)):
        return Change("turns", said, "", displaced, hedged)
    return Change("none", text)
