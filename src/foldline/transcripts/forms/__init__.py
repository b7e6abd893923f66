"""Lists of messages in the forms of other libraries and APIs, written as Chat Completions."""
