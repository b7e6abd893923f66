"""What the agent's model can do: one file a tool."""
