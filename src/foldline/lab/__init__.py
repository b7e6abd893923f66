"""The lab: recorded sessions replayed under policies. It reads files, makes the compactions, measures, draws."""
