"""Amazon Bedrock's Converse API, whose messages Strands Agents keeps too."""
