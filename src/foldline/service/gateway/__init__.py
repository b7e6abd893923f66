"""The gateway under `/v1`: an agent's requests on their way to its model, folded where they must be."""
