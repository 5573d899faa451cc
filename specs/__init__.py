"""The keyed rules of cc-agents, and the reader that holds rules and tests together.

Owns: the specs below specs/, their parser and their table. Does not own: the tests; it reads them, never imports them.
"""
