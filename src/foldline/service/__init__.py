"""Sessions over HTTP: an API, and a gateway between any agent and its model. Needs the extra `serve`."""
