"""A terminal's screen, as far as Claude Code draws on one: what a person would see.

Owns: the cells and the cursor. Does not own: colours (dropped), keys, the process. The codes are those of ECMA-48 and
xterm; what isn't known here moves nothing. Standard library only.
"""

from __future__ import annotations

import codecs
import re
import unicodedata

CONTROL = re.compile(
    r"\x1b\[(?P<args>[0-?]*)[ -/]*(?P<code>[@-~])"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"  # strings: titles, links, queries
    r"|\x1b[()*+].|\x1b[^\[\]PX^_()*+]",
    re.DOTALL,
)
BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07]*|[()*+])?\Z")  # a code whose end is yet to come
# How far down and to the right each step of a code goes; those that name a place go nowhere from it.
MOVES = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1), "E": (1, 0), "F": (-1, 0)}
MOVES |= dict.fromkeys("HfdG", (0, 0))


class Screen:
    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.top, self.bottom = 0, rows - 1  # of what scrolls
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def text(self) -> str:
        """All of it, with one space for any run of blanks and line ends."""
        return " ".join(" ".join("".join(row) for row in list(self.cells)).split())

    def feed(self, data: bytes) -> None:
        text, at = self._rest + self._decoder.decode(data), 0
        for found in CONTROL.finditer(text):
            self._print(text[at : found.start()])
            at = found.end()
            if found["code"]:
                self._control(found["code"], found["args"])
        rest = BEGUN.search(text, at)
        end = rest.start() if rest else len(text)
        self._print(text[at:end])
        self._rest = text[end:]

    # --- what is drawn

    def _print(self, text: str) -> None:
        for char in text:
            if char == "\r":
                self.column = 0
            elif char == "\n":
                self._down()
            elif char == "\b":
                self.column = max(0, self.column - 1)
            elif char == "\t":
                self.column = min(self.columns - 1, (self.column // 8 + 1) * 8)
            elif char >= " " and not unicodedata.combining(char):
                self._put(char)

    def _put(self, char: str) -> None:
        width = 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if self.column + width > self.columns:
            self.column = 0
            self._down()
        cells = self.cells[self.row]
        cells[self.column] = char
        cells[self.column + 1 : self.column + width] = [""] * (width - 1)
        self.column += width

    def _down(self) -> None:
        if self.row == self.bottom:
            self._scroll(self.top, 1)
        else:
            self.row = min(self.rows - 1, self.row + 1)

    def _scroll(self, first: int, lines: int) -> None:
        """The lines from `first` to the bottom of what scrolls go up by `lines`, or down."""
        part = self.cells[first : self.bottom + 1]
        lines = max(-len(part), min(len(part), lines))
        empty = [[" "] * self.columns for _ in range(abs(lines))]
        part = [*part[lines:], *empty] if lines >= 0 else [*empty, *part[:lines]]
        self.cells[first : self.bottom + 1] = part

    # --- control sequences

    def _control(self, code: str, args: str) -> None:
        if args[:1] in "<=>?" and args:
            return  # modes and queries of xterm's own
        numbers = [int(part) if part.isdigit() else 0 for part in args.split(";")]
        n = max(1, numbers[0])
        if code in MOVES:
            self._move(code, n, max(1, *numbers[1:2]) if numbers[1:] else 1)
        elif code in "JK":
            self._erase(code, numbers[0])
        elif code == "X":
            self._blank(self.row, self.column, self.column + n)
        elif code in "LMST":
            first = self.row if code in "LM" else self.top
            self._scroll(first, n if code in "MS" else -n)
        elif code == "r":
            last = numbers[1] if len(numbers) > 1 and numbers[1] else self.rows
            self.top, self.bottom, self.row, self.column = n - 1, last - 1, 0, 0

    def _move(self, code: str, n: int, last: int) -> None:
        down, right = MOVES[code]
        if code in "Hf":
            self.row, self.column = n - 1, last - 1
        elif code == "d":
            self.row = n - 1
        elif code in "GEF":
            self.column = n - 1 if code == "G" else 0
        self.row = max(0, min(self.rows - 1, self.row + n * down))
        self.column = max(0, min(self.columns - 1, self.column + n * right))

    def _erase(self, code: str, how: int) -> None:
        begin = 0 if how else self.column
        end = self.column + 1 if how == 1 else self.columns
        self._blank(self.row, begin, end)
        if code == "J":
            for row in range(self.rows):
                if how >= 2 or (row < self.row if how else row > self.row):
                    self._blank(row, 0, self.columns)

    def _blank(self, row: int, begin: int, end: int) -> None:
        end = min(end, self.columns)
        self.cells[row][begin:end] = [" "] * (end - begin)
