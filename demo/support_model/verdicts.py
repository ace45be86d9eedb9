"""What the scripted model makes of a ticket: the rules of the agent's prompt, followed."""

from dataclasses import dataclass
from typing import Any

from demo.support_model.past import Past, has

BROKEN = ("broke", "crack", "torn", "damaged", "defect", "faulty", "does not work", "wrong")
MISSING = ("never arrived", "not arrived", "nothing came", "where is", "still waiting", "not here")
UNWANTED = ("changed my mind", "do not like", "too small", "too large", "do not need", "return")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`thought`: what led to it. `decided`: in a few words. `letter`: what the customer is told if nothing is paid."""

    decided: str
    thought: str
    letter: str
    refund_cents: int = 0
    resolved: bool = True


def verdict_on(past: Past) -> Verdict:
    if past.order is None:
        return _without_order(past)
    if past.order["email"] != past.ticket.customer:
        return Verdict(
            "not this customer's order: nothing is said of it",
            "The order belongs to another address. I may neither tell what is in it nor pay anything back.",
            "the order number that you gave does not belong to your address. Could you look it up once more?",
            resolved=False,
        )
    if paid := [event for event in past.events if event["what"] == "refunded"]:
        return Verdict(
            "refunded before: not a second time",
            f"The history has a refund already, of {paid[-1]['day']}. Paying again would be wrong.",
            f"we paid this order back on {paid[-1]['day']} ({paid[-1]['note'].rstrip('.')}). It can take five days"
            " until you see it.",
        )
    if past.has_arrived:
        return Verdict(
            "it has arrived after all: no refund",
            "The customer writes that it is there. Then there is nothing to pay back.",
            "good to hear that it is settled. Nothing more to do for you; write to us whenever something is not right.",
        )
    return _on_complaint(past, past.order)


def _without_order(past: Past) -> Verdict:
    given = past.ticket.order_id
    wanted = f"we know no order {given}" if given else "your letter does not name the order"
    return Verdict(
        "no order to look at: ask for its number",
        f"{'The shop does not know ' + given if given else 'No order number was given'}. I cannot decide anything.",
        f"{wanted}. Could you send us its number? It stands on the bill and begins with o-.",
        resolved=False,
    )


def _on_complaint(past: Past, order: dict[str, Any]) -> Verdict:
    text = past.ticket.text.lower()
    if has(text, BROKEN):
        return _broken(text, order)
    if has(text, MISSING):
        return _missing(past, order)
    if has(text, UNWANTED):
        return Verdict(
            "it can be sent back: no refund before that",
            "Nothing is wrong with it, the customer does not want it any more. It has to come back first.",
            "you can send it back to us within 30 days. Print the label from your account; as soon as the parcel is"
            " here, we pay you back.",
        )
    latest = past.events[-1] if past.events else {"what": "ordered", "note": ""}
    return Verdict(
        "a question: answer it from the history",
        f"No complaint, a question. The latest that is known: {latest['what']}.",
        f"the latest that we know of your order: {latest['what']}. {latest['note']}".rstrip(),
    )


def _broken(text: str, order: dict[str, Any]) -> Verdict:
    item = next((item for item in order["items"] if item["name"].lower() in text), None)
    cents = item["price_cents"] if item else order["total_cents"]
    what = item["name"] if item else "the whole order"
    return Verdict(
        f"{what} came broken or wrong: pay back {money(cents)}",
        f"Broken or wrong goods are paid back. That is {what}, {money(cents)} of {money(order['total_cents'])}.",
        "",
        refund_cents=cents,
    )


def _missing(past: Past, order: dict[str, Any]) -> Verdict:
    what = {event["what"]: event for event in past.events}
    if "lost" in what:
        return Verdict(
            f"the carrier lost it: pay back {money(order['total_cents'])}",
            f"Lost on {what['lost']['day']}: {what['lost']['note']} It never came, so all of it goes back.",
            "",
            refund_cents=order["total_cents"],
        )
    if "delivered" in what:
        return Verdict(
            "delivered according to the carrier: ask the customer to look again",
            f"The carrier delivered it on {what['delivered']['day']}. I cannot pay back what was handed over.",
            f"the carrier says that your parcel was handed over on {what['delivered']['day']}. Could you ask in the"
            " house? If it does not turn up, we have the carrier look for it.",
        )
    return Verdict(
        "still under way: no refund yet",
        "It is late, and neither delivered nor lost. It may well come in the next days.",
        "your parcel is late but on its way; it should be with you within three days. If it is not, we pay you back.",
    )


def money(cents: int) -> str:
    return f"{cents / 100:.2f}"
