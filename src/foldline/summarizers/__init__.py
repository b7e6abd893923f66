"""Summarisers: code alone (`offline`), or a model."""

from foldline.summarizers.base import Summarizer
from foldline.summarizers.candidate import Candidate
from foldline.summarizers.model import ModelSummarizer
from foldline.summarizers.named import summarizer_for, unasked_warning
from foldline.summarizers.offline import OfflineSummarizer

__all__ = [
    "Candidate",
    "ModelSummarizer",
    "OfflineSummarizer",
    "Summarizer",
    "summarizer_for",
    "unasked_warning",
]
