"""Who runs turns: this terminal, a job in the background, `serve`, `batch`."""
