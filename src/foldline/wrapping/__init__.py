"""Agents of others: led through the gateway and given the MCP server by their own settings, and back."""
