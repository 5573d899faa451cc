"""The journal of a job: in order, cheap, and honest about a disk that is full or a writer that died.

Serves design section 8. Real files.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from sidecar.journal import FLUSH_BYTES, Journal, read_events


def test_events_are_read_back_in_order_from_any_point(tmp_path: Path) -> None:
    path = str(tmp_path / "events.ndjson")
    assert list(read_events(path)) == []
    journal = Journal(path, warn=pytest.fail)
    events = [{"n": n, "text": "漢\n\ud83c"} for n in range(5)]
    for event in events:
        journal.write(event)
    journal.flush()
    read = list(read_events(path))
    assert [e for e, _ in read] == events
    assert [e for e, _ in read_events(path, read[2][1])] == events[3:]
    journal.close()
    journal.close()
    journal.write({"n": "late"})
    assert [e for e, _ in read_events(path)] == events


def test_events_reach_the_disk_by_size_and_by_age(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "events.ndjson"
    journal = Journal(str(path), warn=pytest.fail, clock=lambda: now)
    journal.write({"n": 1})
    assert path.read_bytes() == b""
    now = 1.0
    journal.write({"n": 2})
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'
    journal.write({"n": "x" * FLUSH_BYTES})
    assert len(path.read_bytes()) > FLUSH_BYTES
    journal.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_disk_costs_the_journal_one_warning_and_never_the_turn() -> None:
    warnings: list[str] = []
    journal = Journal("/dev/full", warn=warnings.append)
    for n in range(3):
        journal.write({"n": n})
        journal.flush()
    journal.close()
    assert warnings == ["the events are no longer recorded: No space left on device"]


def test_torn_and_foreign_lines_are_passed_by(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(b'{"n":1}\n{"n":\n[]\n\n\xff\n{"n":2}\n{"n":3}')
    assert [e for e, _ in read_events(str(path))] == [{"n": 1}, {"n": 2}]
    with path.open("ab") as f:
        f.write(b"\n")
    assert [e["n"] for e, _ in read_events(str(path))] == [1, 2, 3]


def test_twenty_thousand_events_cost_few_writes(tmp_path: Path) -> None:
    path = str(tmp_path / "events.ndjson")
    journal = Journal(path, warn=pytest.fail, clock=lambda: 0.0)
    delta = {"type": "text_delta", "text": "word "}
    began = time.process_time()
    for _ in range(20_000):
        journal.write(delta)
    journal.close()
    assert time.process_time() - began < 5  # it takes 0.15 s where nothing else runs
    assert Path(path).read_bytes() == (json.dumps(delta, separators=(",", ":")) + "\n").encode() * 20_000
