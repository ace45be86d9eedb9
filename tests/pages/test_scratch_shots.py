import pytest
from pathlib import Path
from tests.pages.browser import Site
from tests.pages.incidents import incident, url_of
pytestmark = pytest.mark.slow
OUT = Path("/tmp/e-shots"); OUT.mkdir(exist_ok=True)

def test_shots(site: Site) -> None:
    run = incident()
    from tests.pages.incidents import worker
    page = site.open("olga", url_of(run))
    for width, height in ((1440, 900), (390, 844)):
        for scheme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)
            page.goto(url_of(run))
            page.wait_for_timeout(300)
            page.screenshot(path=str(OUT / f"run-{width}-{scheme}.png"), full_page=True)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    for name, query in {"seq": "?axis=seq", "time": "?axis=time", "state": "?at=9&with=20", "entry": "?seq=5", "journal": "/journal"}.items():
        page.goto(url_of(run) + query)
        page.screenshot(path=str(OUT / f"run-{name}.png"), full_page=True)
    page.goto(url_of(run))
    page.pdf(path=str(OUT / "run.pdf"), format="A4", print_background=True)
