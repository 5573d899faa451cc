"""Which text is Codex's answer.

Owns the rule by which one of a turn's agent messages is the final text, byte for byte. Does not own whose items
they are: only items of the turn itself come here. Serves rule.exactFinal; facts: codex-facts section 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.values import Value

# The last message of the best rank is the answer. An unknown phase ranks like none at all.
RANK = {"final_answer": 0, None: 1, "partial_answer": 2, "commentary": 3}
UNKNOWN_PHASE_RANK = 1


class Message(Value, frozen=False):
    phase: str | None = None
    delivery: str | None = None
    completed: bool = False
    text: str = ""
    deltas: list[str]

    @property
    def rank(self) -> int:
        return RANK.get(self.phase, UNKNOWN_PHASE_RANK)


class Answer:
    """Collects the agent messages of one turn. An item that completes again replaces what it said before."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._review: str | None = None
        self.repaired = False  # a lone surrogate was replaced

    def started(self, item: Mapping[str, Any]) -> None:
        if item.get("type") == "agentMessage":
            self._describe(self._message(str(item.get("id"))), item)

    def delta(self, item_id: str, text: str) -> None:
        message = self._message(item_id)
        if not message.completed:
            message.deltas.append(text)

    def _message(self, ident: str) -> Message:
        message = self._messages.get(ident)
        if message is None:
            message = self._messages[ident] = Message(deltas=[])
        return message

    def completed(self, item: Mapping[str, Any]) -> None:
        kind = item.get("type")
        if kind == "exitedReviewMode" and isinstance(item.get("review"), str):
            self._review = item["review"]
        if kind != "agentMessage":
            return
        ident = str(item.get("id"))
        # taken out and put in again: the order is that of completion
        message = self._message(ident)
        del self._messages[ident]
        self._describe(message, item)
        text = item.get("text")
        message.text = text if isinstance(text, str) else "".join(message.deltas)
        message.completed = True
        message.deltas.clear()
        self._messages[ident] = message

    def summary(self, items: Any) -> None:
        """turn/completed may carry the answer itself: what was not seen yet counts as completed now."""
        for item in items if isinstance(items, list) else ():
            if isinstance(item, Mapping):
                known = self._messages.get(str(item.get("id")))
                if known is None or not known.completed:
                    self.completed(item)

    @property
    def final(self) -> str:
        """The final text, "" when there is none. A message that only began doesn't count: a steer voids it."""
        if self._review is not None:
            return self._exact(self._review)
        best: Message | None = None
        for message in self._messages.values():
            usable = message.completed and message.delivery is None and message.text
            if usable and (best is None or message.rank <= best.rank):
                best = message
        return self._exact(best.text) if best is not None else ""

    @property
    def has_final_answer(self) -> bool:
        return any(m.completed and m.delivery is None and m.rank == 0 for m in self._messages.values())

    @property
    def partial(self) -> str:
        """The text that was under way, or the last one that was said, of a turn without an answer."""
        for message in reversed(self._messages.values()):
            text = message.text if message.completed else "".join(message.deltas)
            if text and message.delivery is None:
                return self._exact(text)
        return ""

    def _describe(self, message: Message, item: Mapping[str, Any]) -> None:
        phase, delivery = item.get("phase"), item.get("delivery")
        message.phase = phase if isinstance(phase, str) else None
        message.delivery = delivery if isinstance(delivery, str) else None

    def _exact(self, text: str) -> str:
        """The text as it can be written: two halves of a surrogate pair join, a lone one becomes U+FFFD."""
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            self.repaired = True
            return joined
        return text
