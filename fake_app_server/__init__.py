"""A scripted stand-in for `codex app-server` on stdio, for tests and for `cc-agents demo`.

Owns: what a client sees of Codex 0.171 on the wire. Does not own: any wire code of the client (the two share
nothing, so that they can't agree on the same mistake). Standard library only. Serves spec:cc-agents.fakes.
"""
