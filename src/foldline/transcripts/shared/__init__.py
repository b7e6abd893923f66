"""What the readers of several formats share: lines and files, values, trees, payloads of two dialects."""
