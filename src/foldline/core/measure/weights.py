"""The offline counter's weights: 255 x the chance that a token starts between a left and a right class.

Written by tools/fit_tokens.py, a row for each of `LEFT_GROUPS`, a column for each of `RIGHT_GROUPS`.
"""

from __future__ import annotations

from typing import Final

# fmt: off
WEIGHTS: Final = bytes((
     44, 255, 255, 255, 255, 245, 135,  63, 255, 255,  76,  76, 255, 255, 115, 255,  # line break
      0,  15,  69,  71, 103,  46, 255, 243, 132, 106,  76,  76, 132,   7,  33, 127,  # blank
    255, 192,   0,   0,  23, 255, 157, 248, 255, 255,  76,  76,  71,  56,   0, 252,  # vowel
    255, 145,   5,  24,  90, 225, 254,   0,  84, 181,  76,  76, 115, 113,  13, 123,  # consonant
    254, 139,  36,  57, 255, 255, 255,   0, 255, 255,  76,  76, 180,  80,  94, 185,  # rare letter
    255,   0,   0, 112, 255,  63, 173,   0, 249, 255,  76,  76, 116, 113,   0, 194,  # capital
    255,  97,  89, 255, 255, 221, 255,   0, 158, 198,  76,  76, 106,  89,   3, 158,  # rare capital
    255, 238, 255, 255, 255, 255,  83, 255, 238, 207,  76,  76,   0,  69, 174, 255,  # digit
     58, 226, 229, 223, 132,  93, 255,   9, 118,   0,  76,  76, 184, 213,   0,  94,  # joiner
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76, 202,  62,  76,  76,  76,  76,  # lead of Latin
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76,  93,  21,  76,  76,  76,  76,  # lead of Greek, Cyrillic, Hebrew, Arabic
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76,  81,   0,  76,  76,  76,  76,  # lead of kana, symbols, Indic, emoji
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76, 160,  31,  76,  76,  76,  76,  # lead of Han
     76,  76,  76,  76,  76,  76,  76,  76,  76,  76,  27, 114,  76,  76,  76,  76,  # lead of Hangul
    255,  77,   0, 250, 149, 167, 186, 204,   0,   0, 140,   0,  18,  28,  20, 113,  # continuation
     95, 168, 255, 233, 255, 255, 154,  71,  96,  85,  76,  76, 243, 255, 183,  18,  # other
))
# fmt: on
