"""Windows and prices of models, and exact token counts. Importing this reads no file."""

from foldline.catalogue.exact import exact
from foldline.catalogue.info import DEFAULT_WINDOW, ModelInfo, learn, learned
from foldline.catalogue.models import Catalogue
from foldline.core.decide.price import Price, cost

__all__ = [
    "DEFAULT_WINDOW",
    "Catalogue",
    "ModelInfo",
    "Price",
    "cost",
    "exact",
    "learn",
    "learned",
]
