"""The rules by which a sentence is a standing constraint, in languages other than English, by name."""

from __future__ import annotations

# The first word is an order's verb: no pronoun, article or report ("war nie", "funktioniert nie").
_ORDERS = (
    r"^\W*(?:bitte )?(?!(?:ich|du|er|sie|es|wir|ihr|man|der|die|das|den|dem|ein|eine|mein|dein|unser|hier|da|"
    r"so|wer|was|wie|noch|bisher|leider|habe?|hatten?|bin|war|waren|wurden?|konnten?|sollten?|musste|kam|sah|"
    r"und|aber|auch|mir|uns)\b)(?:\w{2,}(?:e|ere)|\w{2,}[^\Wteaou\d])"
)
GERMAN = {
    "de never": r"\b(?:niemals|auf keinen fall|unter keinen umständen|keinesfalls)\b|\bnie(?:\s+(?:wieder|"
    r"mehr))?\b(?=.*\b(?:verwenden|benutzen|ändern|"
    r"löschen|nutzen)\b)|"
    rf"{_ORDERS}\s+(?:bitte\s+)?nie\b|"
    r"^\W*nie\s+(?!\w+(?:t|en)\b.*\bwird)\w+.*\w+en\W*$",
    "de always": r"\b(?:bitte|soll(?:en|te|ten)?|muss|müssen|musst)\b.{0,30}\bimmer\b(?! noch)|^\W*(?:immer|"
    r"\w+e?)\s+immer\b(?! noch)|^\W*immer\s+(?!noch|wenn)|"
    r"\b(?:antworte|schreib|sprich|rede|kommentare|doku)\w*\b.{0,40}\bauf (?:deutsch|englisch|"
    r"französisch|spanisch|italienisch|japanisch|chinesisch|dänisch|russisch)\b|^\W*(?:bitte )?(?:duze|"
    r"sieze)\b|"
    r"^\W*(?:alle|jede[rsmn]?|vor jede[mrn]|nach jede[mrn]) .{2,60}\b(?:muss|müssen|braucht|brauchen|"
    r"sollen?|bleib(?:t|en))\b|"
    r"^\W*alle (?!.*\b(?:rot|grün|weg|fertig|kaputt|da)\b)[\w ]{2,40} sind in \w+|"
    r"^\W*(?!(?:der|die|das|es|er|sie|ich|wir)\b)\w+ [\w ]{2,30} immer (?:zuerst|vorher|auf|in|mit|"
    r"als)\b|\bkurze? antworten\b|\bantworte\w* kurz\b|"
    r"^\W*(?:sprich|nenn)e? mich\b",
    "de must not": r"\b(?:darf|dürfen|darfst|soll(?:en|te|ten)?)\b.{0,50}\b(?:nicht|kein\w*|nur|nie)\b|"
    r"^\W*(?:bitte )?(?:nicht|keine?n?)\s+\w+|"
    rf"{_ORDERS}\s+(?:bitte\s+)?(?:d(?:ie|en|as|er|em|iese\w*)\b|(?:mein|unser|kein)\w*|\S*\w[./_]\w).{{0,60}}"
    r"\bnicht (?:an|ab|auf|aus|ein|um|weg|zu|hoch|zurück)\W*$",
    "de only": r"\bausschließlich\b|\b(?:verwende|benutze|nutze|nimm)\b.{0,30}\bnur\b|\bbitte nur\b|"
    r"\bkeine?n? (?:neuen?|weiteren?)\b|"
    r"^\W*nur [^,.]{2,40} (?:dürfen|darf|können|kann)\b|^\W*wir (?:verwenden|nutzen|benutzen|"
    r"schreiben)\b.{2,50}\b(?:statt|nur|immer|nie|überall|keine)\b|"
    r"\bohne (?:meine|unsere|vorherige|ausdrückliche)\b|\bfrag\w* (?:mich|uns|erst|vorher|"
    r"immer)\b.{0,20}\b(?:bevor|vor|zuerst|vorher)\b|"
    r"^\W*(?:maximal|höchstens|mindestens) \d+|"
    r"^\W*(?!(?:das|es|der|die|er|sie|ich)\b)\w+ [\w ]{0,40}\bnur (?:nach|mit|über|per) \w+\W*$",
    "de from now on": r"\b(?:ab (?:jetzt|sofort|heute|nun)|von (?:jetzt|nun) an|in zukunft|künftig|"
    r"grundsätzlich|stets)\b|\bachte (?:immer )?darauf\b",
}  # fmt: skip
FRENCH = {
    "fr never": r"^\W*ne (?:jamais|pas|plus|rien)\s+\w+|^\W*n(?:e |['’])\w+(?:-\w+)*\s+(?:jamais|pas|rien|"
    r"plus|aucun)|\b(?:il )?ne (?:faut|doi(?:t|s|vent)|peut|peuvent|devez)\s+(?:pas|jamais|"
    r"plus)|^\W*(?:jamais|pas) de\b|^\W*(?:s['’]il te pla[iî]t,? )?évite|"
    r"^\W*pas d['’]\w+|\binterdit\w*\b",
    "fr always": r"^\W*\w+(?:s|e|ez|-moi|)\s+toujours\b|\b(?:doi(?:t|s|vent)|devez|faut)\s+toujours\b|"
    r"^\W*toujours\b|\b(?:uniquement|seulement)\b(?=.*\b"
    r"(?:utilis|code|fichier))|\b(?:désormais|dorénavant|à partir de maintenant)\b|"
    r"^\W*utilise[rz]?\s+(?:uniquement|seulement|toujours)|"
    r"\b(?:réponds|répondez|écris|écrivez|parle)\b.{0,30}\ben (?:français|anglais|allemand|espagnol|"
    r"italien|japonais|chinois)\b|\butilise[rz]?\b.{2,40}, (?:pas|jamais)\b|"
    r"^\W*seule?s? .{2,60}\b(?:peu(?:t|vent)|doi(?:t|vent))\b|\bdemande[zr]?(?:-(?:moi|"
    r"nous))?\b.{0,15}\bavant (?:de|d['’]|tout)|"
    r"^\W*(?:chaque|tous les|toutes les|tout) .{2,60}\b(?:doi(?:t|vent))\b|^\W*les [\w ]{2,30} (?:est|"
    r"sont) toujours (?:en|au|stocké|écrit)|"
    r"\bréponses? (?:courtes?|brèves?)\b|"
    r"^\W*(?:tous|toutes) les [\w ]{2,30} (?:au format|en)\b",
}  # fmt: skip
SPANISH = {
    "es never": r"^\W*(?:por favor,? )?(?:nunca|jamás)\s+\w+(?:as|es|e|a)\b|^\W*(?:por favor,? )"
    r"?no\s+(?!es\b|las\b|los\b|estás\b|puedes\b|quieres\b|tienes\b)"
    r"\w{2,}(?:es|as)\b|\bno (?:debe[sn]?|se (?:debe|puede))\b|^\W*evita|"
    r"\bprohibido\b|\bsin (?:mi|nuestro) (?:permiso|aprobación)\b",
    "es always": r"^\W*(?:por favor,? )?(?:\w+\s+)?siempre\b|\bdebe[ns]?\s+(?:siempre|ser|estar)\b|\b(?:a "
    r"partir de ahora|de ahora en adelante)\b|"
    r"\b(?:usa|utiliza)\s+(?:solo|sólo|únicamente)\b|^\W*(?:usa|responde|escribe)\s+siempre\b|"
    r"\b(?:responde|escribe|habla|contesta)\b.{0,30}\ben (?:español|inglés|francés|alemán|italiano|"
    r"japonés|chino)\b|\busa\b.{2,40}, no\b|^\W*(?:mejor )?usa \w+(?: para la? \w+)?\W*$|"
    r"^\W*(?:solo|sólo|solamente|únicamente) .{2,60}\b(?:pueden?|deben?)\b|\b(?:pregúntame|consúltame|"
    r"avísame)\b.{0,15}\bantes\b|"
    r"^\W*(?:tod[ao]s l[ao]s|cada|tod[ao]) .{2,60}\bdeben?\b|^\W*máximo \d+|"
    r"^\W*l[ao]s [\w ]{2,30} siempre\b|"
    r"^\W*(?:los|las|el|la|tod[ao]s?) [\w ]{2,40} en (?:español|inglés|francés|alemán)\W*$|"
    r"\brespuestas? (?:cortas?|breves?)\b",
}  # fmt: skip
OTHERS = {
    "zh": r"不要|禁止|严禁|不得|绝对不|不允许|不许|不准|必须|务必|一定要|始终|永远|"
    r"以后|今后|从现在(?:开始|起)|统一(?:使用|用)|只(?:能|用|允许|使用|可以)|尽量|尽可能|避免|总是(?:用|使用)|"
    r"请(?:勿|别|保持|始终)|(?:^|[，。；])\s*别(?!的|人)|请用.{1,6}(?:回答|回复)|都(?:要|用|应该?)|"
    r"先问我|先征求|只有.{1,12}(?:可以|能|才)|所有.{1,12}(?:都|必须|应|以)|用(?:中文|英文|日文|英语|日语|法语|德语|汉语)(?:回答|回复|写|注释|交流)?|"
    r"每次.{1,15}(?:必须|都要|要|先)|"
    r"(?:回答|回复).{0,3}(?:简洁|简短|简明)",
    "ja": r"ないで(?:ください|下さい|ほしい|欲しい)|ては(?:いけ|なら|だめ|駄目)|禁止|必ず(?!失敗|エラー)|"
    r"常に|絶対に|今後は?|これから(?:は|ずっと)|(?:のみ|だけ)を?使|(?:しない|する|使う|守る)こと|ようにして|べき(?:です|では|でない)|避けて|いつも|"
    r"でお願いします|語で(?:答え|回答|書い|返信|お願い)|だけが|前に.{0,8}(?:確認|聞い|相談)|ないこと|(?:全て|すべて)の?.{1,15}は",
    "ko": r"하지\s*(?:마|말)|반드시|항상|절대|앞으로|만\s*사용|금지|지\s*마세요",
    "ru": r"\bникогда\s+не\b|^\W*(?:всегда|не\s+\w+(?:й|йте|ь|ьте))\b|\b(?:нельзя|обязательно|запрещено|"
    r"отныне|впредь)\b|\bдолж(?:ен|на|но|ны)\s+(?:всегда|быть)",
    "pt, it": r"^\W*(?:nunca|sempre|não\s+\w+[ea]s?\b|non\s+\w+(?:re|are|ere|ire)\b|mai\s+\w+re\b)|\b(?:a "
    r"partir de agora|d['’]ora in poi|usa sempre|use sempre)\b",
}  # fmt: skip
