"""The scripted model behind the demo's support agent: `decide` answers a request as a sensible model would.

A pure function of what stands in the request, in any of the three protocols: it remembers nothing between two requests.
The ticket decides its slips: of some it forgets an argument's name at first, or writes an amount as a text.
"""

from collections.abc import Iterator
from dataclasses import replace

from demo.providers.asked import Asked
from demo.providers.faults import Fault
from demo.providers.turns import Block, Call, Text, Thinking, Turn, call, say, think, turn
from demo.support_model.past import ARRIVED, Past, has
from demo.support_model.verdicts import Verdict, money, verdict_on

LONGEST = 3.2  # seconds that an answer streams
BETWEEN_WORDS = 0.05
SELDOM = (
    Fault("rate_limit", times=None, share=1 / 11, retry_after=3),
    Fault("overloaded", times=None, share=1 / 17, retry_after=2),
)
VOUCHER = 10  # per cent


def decide(asked: Asked) -> Turn:
    """At a speed to watch, with a provider that now and then has too much to do."""
    answer = quickly(asked)
    pieces = 6 + sum(len(each.text.split()) if isinstance(each, Text | Thinking) else 6 for each in answer.blocks)
    return replace(answer, wait=0.4, pace=min(BETWEEN_WORDS, LONGEST / pieces), faults=SELDOM)


def quickly(asked: Asked) -> Turn:
    """The same answer at once, and always."""
    return turn(*_next(Past(asked)))


def _next(past: Past) -> Iterator[Block]:
    if not past.calls:
        return _begin(past)
    if past.order is None and not past.knows_no_order:
        return _look_again(past)
    verdict = verdict_on(past)
    if verdict.refund_cents and past.refund is None:
        return _pay(past, verdict)
    if past.unanswered or not past.of("send_mail"):
        return _write(past, verdict)
    return _end(past, verdict)


def _begin(past: Past) -> Iterator[Block]:
    ticket = past.ticket
    yield think(f"{ticket.name} writes about {ticket.order_id or 'an order without a number'}. {_gist(ticket.text)}")
    yield say(f"Hello {ticket.name}, I am looking into it.")
    if not ticket.order_id:
        yield _plan([], ["ask which order it is"], [])
        return
    about = f"order {ticket.order_id}"
    yield _plan([], [f"look at {about} and its history", "decide what is right", f"write to {ticket.name}"], [])
    slips = past.dice[0] % 5 == 0
    yield call("look_up_order", **{"order" if slips else "order_id": ticket.order_id})
    yield call("order_history", order_id=ticket.order_id)


def _gist(text: str) -> str:
    """The first sentence of it."""
    first = text.strip().partition(". ")[0].rstrip(".!?")
    return f"The point is: {first[:160]}. I need the order and what has happened to it before I say anything."


def _look_again(past: Past) -> Iterator[Block]:
    yield think("The look-up did not take my argument: the parameter is named order_id. Again, then.")
    yield call("look_up_order", order_id=past.ticket.order_id)
    if not past.of("order_history"):
        yield call("order_history", order_id=past.ticket.order_id)


def _pay(past: Past, verdict: Verdict) -> Iterator[Block]:
    cents, order_id = verdict.refund_cents, past.ticket.order_id
    if past.of("refund"):
        yield think("The amount has to be whole cents, as a number. I send it as one.")
    else:
        yield think(verdict.thought)
        yield say(f"I am paying {money(cents)} back for {order_id}.")
        yield _plan(
            [f"looked at order {order_id} and its history"],
            [f"pay back {money(cents)}", f"write to {past.ticket.name}", "put a note on the ticket"],
            [verdict.decided],
        )
    slips = past.dice[1] % 5 == 0 and not past.of("refund")
    reason = verdict.decided.partition(":")[0]
    yield call("refund", order_id=order_id, amount_cents=money(cents) if slips else cents, reason=reason)


def _write(past: Past, verdict: Verdict) -> Iterator[Block]:
    name, first = past.ticket.name, not past.of("send_mail")
    yield think(_on_what_came(past, verdict))
    paragraphs = [_told(past, verdict)] if first else []
    words = [word for word in past.unanswered if not (first and past.has_arrived and has(word, ARRIVED))]
    paragraphs += [_answer(word, past.refunded_cents) for word in words]
    subject = f"Your order {past.ticket.order_id}".strip() if past.ticket.order_id else "Your letter to us"
    yield _plan(_done(past), [f"write to {name}", "put a note on the ticket"], [_outcome(past, verdict)])
    body = "\n\n".join([f"Dear {name},", *filter(None, paragraphs), "Your shop"])
    yield call("send_mail", to=past.ticket.customer, subject=subject, body=body)
    if first or past.unanswered:
        yield call("add_note", text=_note(past, verdict))


def _on_what_came(past: Past, verdict: Verdict) -> str:
    said = [f"Meanwhile {past.ticket.name} writes: “{word}” That belongs in my letter." for word in past.unanswered]
    if past.of("send_mail"):
        return " ".join(said)
    if past.refused_because is not None and not past.has_arrived:
        reason = past.refused_because
        said.insert(0, f"My colleague refused the refund: “{reason}”. I do not ask again; I can offer a voucher.")
    elif past.refunded_cents:
        said.insert(0, f"The refund went out as {past.refund.value['id'] if past.refund else ''}. Now the letter.")
    elif past.refund is not None and not past.has_arrived:
        said.insert(0, "The refund was not made. I say so, and a colleague goes on from here.")
    else:
        said.insert(0, verdict.thought)
    return " ".join(said)


def _told(past: Past, verdict: Verdict) -> str:
    if past.refunded_cents:
        return (
            f"we are sorry for the trouble. We have paid {money(past.refunded_cents)} back; you see it in a few days."
        )
    if past.has_arrived:
        return verdict.letter
    if past.refused_because is not None:
        return (
            "we have looked at your order with care, and cannot pay it back this time. As we would like to keep you,"
            f" you get a voucher of {VOUCHER} % on your next order: SORRY-{past.dice[:3].hex().upper()}."
        )
    if past.refund is not None:
        return "we could not finish your refund today. A colleague looks at it in person and writes to you tomorrow."
    return verdict.letter


def _answer(word: str, refunded_cents: int) -> str:
    if has(word, ARRIVED):
        if refunded_cents:
            return (
                "Thank you for telling us that it has come. Keep it or send it back, as you like; we settle it later."
            )
        return "Thank you for telling us that it is settled."
    return f"You also wrote “{word.strip()}”. I have put it on your ticket, and a colleague reads it."


def _outcome(past: Past, verdict: Verdict) -> str:
    if past.refused_because is not None and not past.has_arrived:
        return f"a voucher of {VOUCHER} % instead of money"
    return verdict.decided


def _done(past: Past) -> list[str]:
    done = [f"looked at order {past.ticket.order_id} and its history"] if past.order else []
    if past.refunded_cents:
        done.append(f"paid back {money(past.refunded_cents)}")
    return done


def _note(past: Past, verdict: Verdict) -> str:
    said = [f"{_outcome(past, verdict).capitalize()}."]
    if past.refused_because is not None:
        said.append(f"The refund was refused: {past.refused_because}.")
    return " ".join([*said, *(f"The customer added: “{word}”" for word in past.unanswered)])


def _end(past: Past, verdict: Verdict) -> Iterator[Block]:
    paid_or_refused = past.refunded_cents or past.refused_because is not None or past.has_arrived
    unfinished = past.refund is not None and not paid_or_refused
    summary = f"{_outcome(past, verdict).capitalize()}. {past.ticket.name} was told by mail."
    yield say("That is all that I can do for this ticket.")
    done = [*_done(past), f"wrote to {past.ticket.name}", "put a note on the ticket"]
    yield _plan(done, [], [_outcome(past, verdict)])
    yield call(
        "final_result", resolved=verdict.resolved and not unfinished, summary=summary,
        refunded_cents=past.refunded_cents,
    )  # fmt: skip


def _plan(done: list[str], next: list[str], decided: list[str]) -> Call:
    return call("update_plan", done=done, next=next, decided=decided)
