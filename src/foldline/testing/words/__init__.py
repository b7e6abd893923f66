"""The words in which a real API refuses a request."""
