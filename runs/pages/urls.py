"""The console's addresses."""

from django.urls import path, re_path

from runs.pages import (
    acting,
    audit_page,
    bulk_moves,
    bulk_pages,
    fleet_views,
    gate_pages,
    killing,
    release_acts,
    run_views,
    runs_list,
    start_page,
    tool_page,
    views_saved,
)
from runs.pages.jump import jump
from runs.pages.live import live_shell
from runs.pages.overview import live_overview, overview
from runs.pages.release_diff import release_diff
from runs.pages.release_page import live_release, release
from runs.pages.releases_page import live_releases, releases
from runs.pages.request_page import request_page
from runs.pages.run_live import live_run
from runs.pages.runs_live import live_runs
from runs.pages.spending_page import spending
from runs.pages.workers_page import live_workers

app_name = "runs"
urlpatterns = [
    path("", overview, name="home"),
    path("live/overview", live_overview, name="live_overview"),
    path("jump", jump, name="jump"),
    path("runs", runs_list.list_page, name="list"),
    path("suggest/runs", runs_list.suggest, name="suggest"),
    path("views/save", views_saved.save, name="save_view"),
    path("views/<int:view_id>", views_saved.change, name="view"),
    path("views/<int:view_id>/delete", views_saved.delete, name="delete_view"),
    path("bulk", bulk_pages.bulks, name="bulks"),
    path("bulk/all", bulk_pages.choose, name="bulk_all"),
    path("bulk/order", bulk_pages.order, name="bulk_order"),
    path("bulk/<int:bulk_id>", bulk_pages.bulk, name="bulk"),
    path("bulk/<int:bulk_id>/stop", bulk_pages.stop, name="stop_bulk"),
    path("bulk/<int:bulk_id>/move", bulk_moves.move, name="bulk_move"),
    path("releases/<str:named>/pin", bulk_moves.from_release, name="pin_release"),
    path("live/bulk/<int:bulk_id>", bulk_pages.live_bulk, name="live_bulk"),
    path("runs/<str:ref>", run_views.run_page, name="run"),
    path("runs/<str:ref>/entries/<int:seq>", run_views.entry, name="entry"),
    path("runs/<str:ref>/state", run_views.state, name="state"),
    path("runs/<str:ref>/journal", run_views.journal, name="journal"),
    path("runs/<str:ref>/journal.jsonl", run_views.journal_lines, name="journal_lines"),
    path("runs/<str:ref>/entries/<int:seq>/payloads/<str:sha256>", run_views.payload, name="payload"),
    path("runs/<str:ref>/entries/<int:seq>/request", request_page, name="request"),
    path("runs/<str:ref>/acts", acting.acts, name="acts"),
    path("runs/<str:ref>/asks/<int:seq>/answer", acting.answer, name="answer"),
    path("runs/<str:ref>/kill-worker", killing.kill, name="kill"),
    re_path(
        r"^runs/(?P<ref>[^/]+)/(?P<verb>cancel|hold|resume|release|retry|signal|note)$", acting.control, name="control"
    ),
    path("live/shell", live_shell, name="live_shell"),
    path("live/runs", live_runs, name="live_runs"),
    path("live/runs/<uuid:run_id>", live_run, name="live_run"),
    path("live/workers", live_workers, name="live_workers"),
    path("workers", fleet_views.workers, name="workers"),
    path("agents", fleet_views.agents, name="agents"),
    path("start", start_page.choose, name="start"),
    path("agents/<path:name>/start", start_page.start, name="start_agent"),
    path("agents/<path:name>/tools/<path:tool>", tool_page.tool, name="tool"),
    path("agents/<path:name>", fleet_views.agent, name="agent"),
    path("spending", spending, name="spending"),
    path("gates", gate_pages.gates, name="gates"),
    path("gates/place", gate_pages.place, name="place_gate"),
    path("gates/<int:gate_id>/lift", gate_pages.lift, name="lift_gate"),
    path("releases", releases, name="releases"),
    path("releases/diff", release_diff, name="release_diff"),
    path("releases/<str:named>", release, name="release"),
    path("releases/<str:named>/promote", release_acts.promote, name="promote_release"),
    path("releases/<str:named>/canary", release_acts.canary, name="canary_release"),
    path("releases/<str:named>/end-canary", release_acts.end_canary, name="end_canary"),
    path("releases/<str:named>/rollback", release_acts.rollback, name="roll_back_release"),
    path("releases/<str:named>/retire", release_acts.retire, name="retire_release"),
    path("live/releases", live_releases, name="live_releases"),
    path("live/releases/<str:named>", live_release, name="live_release"),
    path("audit", audit_page.audit, name="audit"),
    path("audit/export", audit_page.export, name="audit_export"),
]
