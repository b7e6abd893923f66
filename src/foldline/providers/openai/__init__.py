"""OpenAI's two APIs, and every server that implements them."""
