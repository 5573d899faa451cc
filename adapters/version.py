"""The version of cc-agents, in one place: pyproject.toml reads it from here."""

VERSION = "0.1.0"
