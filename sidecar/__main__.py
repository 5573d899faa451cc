"""`python -m sidecar` is the command line."""

try:
    from sidecar.cli import entry
except KeyboardInterrupt:  # while it was being loaded: nothing has happened yet
    raise SystemExit(130) from None
entry()
