"""Takes a turn request and sees it through to an outcome."""
