"""What of the past is likely to be needed again."""
