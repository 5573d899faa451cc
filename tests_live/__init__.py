"""The opt-in suite: the real codex with a scripted model on loopback. It runs with CC_AGENTS_LIVE=1 only."""
