"""What goes on beside requests, for all workers: drafts of sessions, and replays."""
