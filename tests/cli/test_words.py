"""Wrong words, whatever they are: one sentence that says what was wrong, and 2."""

from pathlib import Path

import pytest

from tests.api.conftest import Desk
from tests.cli.manage import manage, refused

NOT_TEXT = "\udcff"  # how a byte that is no UTF-8 comes in


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("words")
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    files = ["@/no/such/file", "@", f"@{folder}", f"@{folder}/binary"]
    return [*files, NOT_TEXT, "y", "-5", "9" * 30, "9" * 5000, "1e400", "nan", "[" * 100_000, "x" * 300, "{", "-"]


SHAPES = [
    "start ?", "start desk --input ?", "start desk --request-key ?", "start desk --release ?", "start desk --label ?",
    "start desk --deadline ?", "start desk --priority ?", "runs --agent ?", "runs --status ?", "runs --release ?",
    "runs --label ?", "runs --label a:?", "runs --parent ?", "runs --q ?", "runs --limit ?", "runs --cursor ?",
    "run ?", "run RUN --seq ?", "hold ? --reason x", "hold RUN --reason ?", "note RUN ?", "signal RUN ?",
    "signal RUN paid --payload ?", "signal RUN paid --id ?", "answer RUN ? x", "answer RUN 2 ?", "intents --state ?",
    "intents --limit ?", "intents --cursor ?", "approve RUN ? --digest x", "approve RUN 2 --digest ?",
    "reconcile RUN ? probe --evidence x", "reconcile RUN 2 ? --evidence x",
    "reconcile RUN 2 happened --evidence x --result ?", "agents ?", "gate place ? --reason x",
    "gate lift ? --reason x", "release promote ? --reason x", "release canary ? --share 5 --reason x",
    "release canary staged@1 --share ? --reason x", "release rollback ? --reason x", "release retire ? --reason x",
    "release needs ?", "release rates ?", "release rates staged@1 --hours ?", "release diff ? ?",
    "release list --agent ?", "token create --user ? --role x", "journal verify ?", "journal export ?",
    "journal import ?", "journal erase RUN --seq ? --actor a --reason r", "tools check ?",
    "agent new ? --dir /dev/null", "generate --runs ? --entries-per-run 3", "chaos --runs 1 --seconds ?",
    "chaos --runs 1 --agent desk --input ?",
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_no_word_ends_in_a_traceback_or_names_what_is_inside(desk: Desk, bad: list[str], shape: str) -> None:
    run = manage("start", "waiter").last
    for word in bad:
        if shape.startswith("chaos") and word in ("9" * 30, "-5"):
            continue  # that is a number, and JSON
        done = manage(*[{"?": word, "RUN": run}.get(part, part.replace("?", word)) for part in shape.split()])
        assert done.code in (0, 2), (word[:60], done.err)
        for inner in ("Traceback", "Errno", "codec", "sys.set_int", "integer range", "float", "UUID("):
            assert inner not in done.err, (word[:60], done.err[-300:])


def test_what_is_no_number_is_told_so(desk: Desk) -> None:
    assert "'y' is not a valid whole number" in refused(manage("run", "r-00000000", "--seq", "y"))
    assert "'soon' is not a valid number" in refused(manage("start", "desk", "--deadline", "soon"))
    assert "'nan' is not a valid number" in refused(manage("start", "desk", "--deadline", "nan"))
    assert "0 is not in the range x>=1" in refused(manage("run", "r-00000000", "--seq", 0))


def test_a_file_that_cannot_be_read_is_told_from_one_that_is_no_json(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("order 1")
    (tmp_path / "binary").write_bytes(b"\xff")
    for given, said in [
        ("@/no/such/file", "'/no/such/file' cannot be read: No such file or directory"),
        (f"@{tmp_path}/text", "this is not JSON: Expecting value"),
        (f"@{tmp_path}/binary", "this is not JSON: it is not UTF-8 text"),
        ("[" * 100_000, "this is nested too deep"),
        ("1" * 5000, "a number of more than 4300 digits"),
        (NOT_TEXT, "no UTF-8 text"),
    ]:
        refusal = refused(manage("start", "desk", "--input", given))
        assert said in refusal and "not JSON: [Errno" not in refusal
