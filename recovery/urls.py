"""The addresses of what waits for people, and of putting things right."""

from django.urls import path

from recovery.pages import (
    adopting,
    comparing,
    deciding,
    draining,
    drains_live,
    forking,
    listing,
    live,
    pinning,
    reconciling,
    replaying,
    settled,
)

app_name = "recovery"
ITEM = "inbox/<str:ref>/<int:seq>"
urlpatterns = [
    path("inbox", listing.inbox, name="inbox"),
    path("inbox/settled", settled.settled, name="settled"),
    path("inbox/ask-the-tools", reconciling.ask_tools, name="ask_tools"),
    path("live/inbox", live.live_inbox, name="live_inbox"),
    path(ITEM, listing.item, name="item"),
    path(f"{ITEM}/approve", deciding.approve, name="approve"),
    path(f"{ITEM}/reject", deciding.reject, name="reject"),
    path(f"{ITEM}/edit", deciding.edit, name="edit"),
    path(f"{ITEM}/ask", deciding.ask_back, name="ask_back"),
    path(f"{ITEM}/reply", deciding.reply, name="reply"),
    path(f"{ITEM}/reconcile", reconciling.reconcile, name="reconcile"),
    path(f"{ITEM}/adopt/<int:evidence>", adopting.adopt, name="adopt"),
    path(f"{ITEM}/evidence/<str:sha256>", adopting.evidence, name="evidence"),
    path("drains", draining.drains, name="drains"),
    path("drains/preview", draining.preview_drain, name="preview_drain"),
    path("drains/order", draining.order, name="order_drain"),
    path("drains/<int:drain_id>", draining.drain, name="drain"),
    path("drains/<int:drain_id>/extend", draining.extend, name="extend_drain"),
    path("drains/<int:drain_id>/lift", draining.lift, name="lift_drain"),
    path("live/drains", drains_live.live_drains, name="live_drains"),
    path("live/drains/<int:drain_id>", drains_live.live_drain, name="live_drain"),
    path("runs/<str:ref>/replay", replaying.replay, name="replay"),
    path("runs/<str:ref>/replay/<int:replay_id>.json", replaying.report, name="replay_report"),
    path("live/replays/<uuid:run_id>", replaying.live_replay, name="live_replay"),
    path("runs/<str:ref>/pin", pinning.pin, name="pin"),
    path("runs/<str:ref>/fork", forking.fork, name="fork"),
    path("runs/<str:ref>/compare", comparing.compare, name="compare"),
    path("runs/<str:ref>/intents/<int:seq>/approval", deciding.old_approval, name="old_approval"),
    path("runs/<str:ref>/intents/<int:seq>/reconcile", reconciling.old_reconcile, name="old_reconcile"),
]
