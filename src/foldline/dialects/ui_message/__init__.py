"""UI messages of the Vercel AI SDK."""
