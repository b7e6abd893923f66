"""An MCP server over a stored session, or over the transcript of the agent that asks it."""
