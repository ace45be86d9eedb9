"""Who may do what, as the manual says and as the code does."""

import re

from config.environment import ROOT
from runs.access import DEMO_USERS, ROLES
from tests.docs.test_name import table_of
from tests.security.table import API

IN_COLUMNS = ("viewer", "operator", "approver", "admin")


def verb_lines(heading: str) -> dict[str, list[str]]:
    """The cells behind each verb, by the verb as it is written: `POST /runs/{id}/hold`."""
    found: dict[str, list[str]] = {}
    for line in table_of("api.md", heading).splitlines():
        if line.startswith("| `"):
            first, *cells = [cell.strip() for cell in line.strip("|").split(" |")]
            full, *short = re.findall(r"`([^`]+)`", first)
            also = [verb if " " in verb else f"{full.rpartition('/')[0]}/{verb}" for verb in short]
            found |= dict.fromkeys([full, *also], cells)
    return found


def written(method: str, path: str) -> str:
    return f"{method} {path.replace('{ref}', '{id}')}"


def test_the_table_of_the_api_says_who_may_use_each_verb() -> None:
    told = verb_lines("Who may do what")
    people = {role: name for name, role in DEMO_USERS.items()}
    for (method, path), (allowed, _) in API.items():
        verb = written(method, path)
        _, *cells = told.pop(verb)
        said = {people[role] for role, cell in zip(IN_COLUMNS, cells, strict=True) if cell == "yes"}
        assert said == allowed, verb
    assert told == {}, "there is no such verb"


def test_each_verb_says_what_it_takes_and_answers() -> None:
    told = verb_lines("Shapes")
    assert [verb for verb in (written(*key) for key in API) if verb not in told] == []


def test_the_roles_are_listed_with_all_their_permissions() -> None:
    rows = [line.strip("|").split("|") for line in table_of("deploying.md", "Roles and tokens").splitlines()]
    told = {row[0].strip(): set(re.findall(r"`(\w+)`", row[2])) for row in rows if row[0].strip() in ROLES}
    told["admin"] |= told["operator"]  # "those"
    assert told == {role: {code.partition(".")[2] for code in codes} for role, codes in ROLES.items()}


def test_the_readme_and_the_index_lead_to_every_page() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md", "conf.md"}
    index, readme = (ROOT / "docs" / "index.md").read_text(), (ROOT / "README.md").read_text()
    assert [page for page in sorted(pages) if f"]({page})" not in index] == []
    assert [page for page in sorted(pages) if f"](docs/{page})" not in readme] == []
