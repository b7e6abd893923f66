"""The lab replays recorded sessions under policies: it reads files, compacts, measures and draws."""
