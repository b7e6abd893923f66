"""The offline counter's weights: 255 x the chance that a token starts between a left and a right class.

Written by tools/fit_tokens.py, a row for each of `LEFT_GROUPS`, a column for each of `RIGHT_GROUPS`.
"""

from __future__ import annotations

from typing import Final

# fmt: off
WEIGHTS: Final = bytes((
     29, 255, 255, 255, 254, 234,  97,  89, 255, 255,  76,  76, 255, 255,  88, 255,  # line break
      0,  15,  79,  83,  89,  63, 255, 238, 149, 107,  76,  76, 129,   1,  47, 112,  # blank
    255, 174,   0,   0,  15, 255, 155, 239, 255, 244,  76,  76,  71,  82,  30, 253,  # vowel
    255, 138,   4,  24,  70, 225, 255,   0,  70, 165,  76,  76,  89, 120,   0, 116,  # consonant
    255, 166,  67,  54, 255, 255, 255,   0, 255, 214,  76,  76, 176,  81,  91, 220,  # rare letter
    255,   0,   0, 124, 255,  65, 172,   0, 255, 255,  76,  76, 108,  73,   0, 188,  # capital
    255,  57,  84, 255, 255, 215, 255,   0, 196, 209,  76,  76, 113,  81,  53, 150,  # rare capital
    255, 237, 255, 255, 255, 255,  83, 255, 241, 255,  76,  76,  49,  68, 184, 255,  # digit
     64, 224, 230, 237, 121,  93, 255,  32,  85,   0,  76,  76, 190, 118,  46,  90,  # joiner
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76, 193,  79,  76,  76,  76,  76,  # lead of Latin
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76,  73,  14,  76,  76,  76,  76,  # lead of Greek, Cyrillic, Hebrew, Arabic
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76,  85,   2,  76,  76,  76,  76,  # lead of kana, symbols, Indic, emoji
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76, 125,  64,  76,  76,  76,  76,  # lead of Han
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76,  24, 119,  76,  76,  76,  76,  # lead of Hangul
    255,  86,   0, 247, 144, 166, 184, 255,   0,   0, 121,   0,  30,  43,  27, 118,  # continuation
     97, 156, 255, 249, 255, 255, 155,  39,  83,  79,  76,  76, 255, 248, 187,  26,  # other
))
# fmt: on
