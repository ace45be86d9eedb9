"""What differs between two texts, line by line and word by word."""

from __future__ import annotations

from runs.pages.text_diff import LONGEST_LINE, MOST_LINES, Line, text_diff


def said(line: Line) -> str:
    """Words that changed in brackets."""
    return "".join(f"[{piece.text}]" if piece.changed else piece.text for piece in line.pieces)


def test_only_the_words_that_differ_are_marked() -> None:
    diff = text_diff('{\n  "amount": 24000,\n  "to": "x"\n}', '{\n  "amount": 22800,\n  "to": "x"\n}')
    assert [line.look for line in diff.before] == ["", "del", "", ""]
    assert [line.look for line in diff.after] == ["", "ins", "", ""]
    assert said(diff.before[1]) == '  "amount": [24000],' and said(diff.after[1]) == '  "amount": [22800],'


def test_words_that_differ_side_by_side_are_marked_as_one() -> None:
    diff = text_diff("Refund the full sum to them.", "Refund a small part to them.")
    assert said(diff.before[0]) == "Refund [the full sum] to them."
    assert said(diff.after[0]) == "Refund [a small part] to them."


def test_a_line_that_one_side_lacks_leaves_room_on_the_other() -> None:
    diff = text_diff("a\nb", "a\nnew one\nb")
    assert [line.look for line in diff.before] == ["", "pad", ""]
    assert [said(line) for line in diff.after] == ["a", "[new one]", "b"]


def test_lines_that_share_nothing_are_marked_whole_but_for_their_indent() -> None:
    diff = text_diff("  lookup_order", "  mail")
    assert said(diff.before[0]) == "  [lookup_order]" and said(diff.after[0]) == "  [mail]"


def test_changes_only_says_how_much_it_leaves_out() -> None:
    lines = [f"line {n}" for n in range(20)]
    diff = text_diff("\n".join(lines), "\n".join([*lines[:10], "other", *lines[11:]]), changes_only=True)
    assert [said(line) for line in diff.before] == [
        "8 lines the same", "line 8", "line 9", "[line 10]", "line 11", "line 12", "7 lines the same",
    ]  # fmt: skip
    assert len(diff.before) == len(diff.after)


def test_the_same_texts_are_the_same() -> None:
    assert text_diff("a\nb", "a\nb").same
    assert not text_diff("a", "").same


def test_what_is_too_long_is_cut_and_says_so() -> None:
    assert text_diff("x\n" * (MOST_LINES + 1), "x").cut
    assert said(text_diff("a" * (LONGEST_LINE + 1), "b").before[0]).startswith("[aaa")
