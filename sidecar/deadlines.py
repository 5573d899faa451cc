"""Every bound that the sidecar keeps, with its reason. Owns numbers, no behaviour. Serves rule.boundedAlways."""

from __future__ import annotations

START_S = 60.0  # for each of Codex's answers before the turn; 30 s on a cold catalogue were seen in the field
# For the end that Codex was told to make, or has announced. It confirms an interrupt within 20 ms; a loaded machine
# gets time, a person not too long.
GRACE_S = 5.0
START_AGAIN_S = (0.2, 0.5, 1.0, 2.0)  # before the next start, when Codex's own database was locked at the last one
END_OF_INPUT_S = 1.0  # from closing stdin to the app-server's own exit; 30 to 70 ms were measured
TERM_GRACE_S = 2.0  # at most, between TERM and KILL for what is left of a turn
GUARD_S = 10.0  # from the last signal to the guard's report; past it the guard itself is taken for broken
SURVIVOR_GRACE_S = 0.5  # between TERM and KILL for what a broken guard has left
EXIT_REPORT_S = 1.0  # from the end of Codex's output to the guard's word how it exited
SCREEN_FLUSH_S = 2.0  # for what is still to be shown when a turn is over; a reader that is stuck must not hold us
STDERR_TAIL_BYTES = 16_384  # of Codex's stderr, kept for the outcome
ALIVE_S = 20.0  # between two signs of life to a program; Claude Code takes ten silent minutes for a stall
UNREAD_S = 0.3  # a program that ends us closes its end and sends a signal; the second word of two ends at once
SAME_SIGNAL_S = 0.1  # between the signal that ends Codex and the same one to us, from one sender
