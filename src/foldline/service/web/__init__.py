"""The web page: sessions seen, folded and steered in a browser."""
