"""Who writes the summaries: code alone (`offline`), or a model."""

from foldline.summarizers.base import Summarizer
from foldline.summarizers.offline import OfflineSummarizer

__all__ = ["OfflineSummarizer", "Summarizer"]
