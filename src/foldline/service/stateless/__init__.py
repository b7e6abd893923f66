"""For clients that keep their own history: `/api/fold` and `/api/turn`, which store nothing."""
