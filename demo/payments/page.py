"""The page for people: ledger, faults and some orders."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from demo.payments.orders import LAST, first_orders

STYLESHEET = Path(__file__).with_name("ledger.css").read_bytes()
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def render(effects: Sequence[Mapping[str, Any]], totals: tuple[int, int], faults: Sequence[Mapping[str, Any]]) -> str:
    acted, replays = totals
    ledger = _table(
        ("#", "Key", "Action", "Arguments", "When (UTC)"),
        ((e["id"], e["key"] or "—", e["action"], _words(e["args"]), e["at"][:23]) for e in effects),
        "Nothing has happened yet.",
    )
    active = _table(
        ("Fault", "Action", "Key", "Times left"),
        ((f["fault"], f["action"], f["key"] or "any", _left(f["remaining"])) for f in faults),
        "None. Order one with POST /faults.",
    )
    orders = _table(
        ("Order", "Customer", "Total", "Items"),
        (
            (o["id"], o["email"], f"{o['total_cents'] / 100:.2f}", ", ".join(i["name"] for i in o["items"]))
            for o in first_orders(12)
        ),
        "",
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Payments ledger</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/ledger.css"></head><body>'
        "<header><h1>Payments</h1><p>The service the demo agents talk to. It keeps what really happened.</p></header>"
        f"<main><h2>Ledger</h2><p>{acted} effects, {replays} requests answered again without acting."
        f' The latest 50; all of them: <a href="/effects">/effects</a>.</p>{ledger}'
        f"<h2>Active faults</h2>{active}<h2>Orders</h2><p>o-1 to o-{LAST}; the first twelve:</p>{orders}</main>"
        "</body></html>"
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[object]], empty: str) -> str:
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    if not body:
        return f"<p>{escape(empty)}</p>"
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _words(args: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in args.items())
    return text if len(text) <= 120 else text[:119] + "…"


def _left(remaining: int | None) -> str:
    return "until removed" if remaining is None else str(remaining)
