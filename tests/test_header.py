"""The header of a prompt, alone. Serves rule.header and rule.promptByteForByte."""

from __future__ import annotations

import pytest

from sidecar.intake import header

pytestmark = pytest.mark.rule("rule.header")


def test_a_header_is_taken_off_with_its_line_end_and_nothing_more() -> None:
    head, rest = header.split("---\nmodel: m\neffort: high\n---\n\n  text \n")
    assert (head.model, head.effort, rest) == ("m", "high", "\n  text \n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text",
        "---",
        "---\n",
        "---\nmodel: m",
        "---\nmodel: m\n",
        "---\nmodel: m\n ---\ntext",
        "---\nmodel: m\n----\ntext",
        "----\nmodel: m\n---\ntext",
        " ---\nmodel: m\n---\ntext",
        "\n---\nmodel: m\n---\ntext",
        "\ufeff---\nmodel: m\n---\ntext",
        "---\nthis is no key\n---\ntext",
        "---\n- a list\n---\ntext",
        "---\u2028model: m\u2028---\u2028text",
        "---\rmodel: m\r---\rtext",
        "--- \nmodel: m\n---\ntext",
    ],
)
@pytest.mark.rule("rule.promptByteForByte")
def test_what_only_looks_like_a_header_is_text_byte_for_byte(text: str) -> None:
    head, rest = header.split(text)
    assert (head, rest) == (header.Header(), text)


def test_an_empty_header_and_blank_lines_in_one_are_fine() -> None:
    assert header.split("---\n---\nx") == (header.Header(), "x")
    assert header.split("---\n\n \nlabel: a\n---\n") == (header.Header(label="a"), "")


def test_line_ends_of_windows_work_in_the_header_and_stay_in_the_text() -> None:
    head, rest = header.split("---\r\nmodel: m\r\n---\r\nx\r\n")
    assert (head.model, rest) == ("m", "x\r\n")


def test_values_lose_the_blanks_around_them_and_keep_all_else() -> None:
    head, _ = header.split("---\nlabel:  a: b # c \nadd-dir: one\nadd-dir:\ttwo\u00a0three\n---\n")
    assert (head.label, head.add_dirs) == ("a: b # c", ("one", "two\u00a0three"))


@pytest.mark.parametrize(
    ("said", "network"), [("yes", True), ("ON", True), ("true", True), ("no", False), ("Off", False)]
)
def test_network_is_yes_or_no(said: str, network: bool) -> None:
    head, _ = header.split(f"---\nnetwork: {said}\n---\n")
    assert (head.network, head.problems) == (network, ())


def test_every_fault_of_a_header_is_said_at_once_and_by_name() -> None:
    head, _ = header.split("---\nefort: high\nmodel:\nlabel: a\nlabel: b\nnetwork: maybe\nModel: m\n---\n")
    said = [p.message for p in head.problems]
    assert {p.reason for p in head.problems} == {"bad_request"}
    assert len(said) == 5
    for word in ("'efort'", "'Model'", "model in", "label stands twice", "'maybe'"):
        assert any(word in line for line in said), word
