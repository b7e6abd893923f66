"""What models can take and cost, and exact token counts. Importing reads no file."""

from foldline.catalogue.exact import exact
from foldline.catalogue.models import (
    DEFAULT_WINDOW,
    Catalogue,
    Model,
    catalogue_date,
    price_of,
    window_of,
)
from foldline.core.measure.price import Price, cost

__all__ = [
    "DEFAULT_WINDOW",
    "Catalogue",
    "Model",
    "Price",
    "catalogue_date",
    "cost",
    "exact",
    "price_of",
    "window_of",
]
