"""A journey: search side by side, hold what fits, ask the traveller, and book or give it back in time."""

from collections.abc import Generator, Iterable
from datetime import date
from typing import Annotated, Any, NotRequired, TypedDict
from urllib.parse import urlencode

from pydantic import Field

from demo.agents import payments_api
from demo.agents.refund_desk import mail
from runs.sdk import Call, CallFailed, First, Policy, RunView, Sleep, ToolContext, WaitFor, flow, tool

CONFIRMED = "confirmed"
DECIDE_WITHIN = 60
MARGIN = 180  # seconds that a hold outlives the traveller's time: for the approval, and for crashes on the way
# A booking is paid for: somebody else agrees to it, or what is held is given back while it still can be.
BOOKING = Policy(group="approver", four_eyes=True, ttl=90, on_expiry="deny", remind_every=30)
KINDS = ("flight", "room")


class Offer(TypedDict):
    id: str
    name: str
    price_cents: int


class Hold(TypedDict):
    id: str
    offer: str
    at: str
    replayed: NotRequired[bool]


class Booking(TypedDict):
    id: str
    hold: str
    at: str
    replayed: NotRequired[bool]


@tool(effect="read", timeout=20)
def find_offers(ctx: ToolContext, kind: str, to: str, day: str) -> list[Offer]:
    """Flights or rooms, cheapest first."""
    found: list[Offer] = payments_api.get(f"/offers/{kind}?{urlencode({'to': to, 'day': day})}")["offers"]
    return found


@tool(effect="keyed", probe=payments_api.find_by_key, timeout=20)
def hold(ctx: ToolContext, offer: str, seconds: int) -> Hold:
    """Keep a seat or a room for us for so long."""
    held: Hold = payments_api.post(ctx, "/hold", offer=offer, seconds=seconds)
    return held


@tool(effect="keyed", probe=payments_api.find_by_key, timeout=20)
def release(ctx: ToolContext, hold: str) -> dict[str, Any]:
    """Give back what is held."""
    released: dict[str, Any] = payments_api.post(ctx, "/release", hold=hold)
    return released


@tool(
    effect="keyed",
    probe=payments_api.find_by_key,
    approval=BOOKING,
    summary=lambda args: f"Book and pay {args['hold']} for {args['traveller']}",
    timeout=20,
)
def book(ctx: ToolContext, hold: str, traveller: str) -> Booking:
    """Book what is held. Refused when the hold has expired."""
    booked: Booking = payments_api.post(ctx, "/book", hold=hold, traveller=traveller)
    return booked


Steps = Generator[Any, Any, Any]


class Journey(TypedDict):
    traveller: Annotated[str, Field(description="A mail address: who is asked, and gets the ticket.")]
    to: Annotated[str, Field(title="Destination")]
    day: Annotated[date, Field(description="Of departure.")]
    decide_within: NotRequired[Annotated[float, Field(gt=0, description="Seconds for the answer; 60 without.")]]


@flow(name="travel-booking", version="2", tools=[find_offers, hold, release, book, mail], input=Journey)
def travel_booking(run: RunView) -> Generator[Any, Any, dict[str, Any]]:
    """Input: `traveller` (a mail address), `to`, `day`; `decide_within` seconds, 60 without."""
    trip, within = run.input, run.input.get("decide_within", DECIDE_WITHIN)
    where = f"{trip['to'].title()} on {trip['day']}"
    thought = f"{where}: flights and rooms can be looked up at once"
    found = yield [
        Call(find_offers, kind=kind, to=trip["to"], day=trip["day"], thought=thought, plan=plan("search"))
        for kind in KINDS
    ]
    held: list[Hold] = []
    for kind, offers in zip(KINDS, found, strict=True):
        kept = yield from hold_first(kind, offers, within + MARGIN)
        if kept is None:
            yield from give_back(held, f"There is no {kind} to be had")
            return {"booked": False, "why": f"no {kind}: {where}"}
        held.append(kept)
    price = price_of(held, [*found[0], *found[1]])
    yield Call(
        mail,
        to=trip["traveller"],
        subject=f"{where}: {price / 100:.2f}",
        body=f"Held for you. Answer within {within} seconds.",
        thought="Both are held; now it is for the traveller to say",
        plan=plan("ask the traveller"),
    )
    answer = yield First(WaitFor(CONFIRMED), Sleep(within))
    if answer.which == 1:
        yield from give_back(held, f"No word in {within} seconds: give both back before anybody pays for them")
        return {"booked": False, "why": "the traveller did not answer in time"}
    try:
        booked = yield [
            Call(
                book,
                id=f"book {kept['id']}",
                hold=kept["id"],
                traveller=trip["traveller"],
                thought="Confirmed: book both",
                plan=plan("book"),
            )
            for kept in held
        ]
    except CallFailed as refused:
        booked = [run.call(f"book {kept['id']}") for kept in held]
        left = [kept for kept, call in zip(held, booked, strict=True) if call is None or call.outcome != "succeeded"]
        yield from give_back(left, "It may not be booked: give back what is still held")
        return {"booked": False, "why": refused.reason}
    letter = "\n".join(f"{kept['offer']}: {booking['id']}" for kept, booking in zip(held, booked, strict=True))
    yield Call(mail, to=trip["traveller"], subject=f"{where}: your itinerary", body=letter, plan=plan("itinerary"))
    return {"booked": True, "bookings": [booking["id"] for booking in booked], "price_cents": price}


def hold_first(kind: str, offers: Iterable[Offer], seconds: int) -> Generator[Any, Any, Hold | None]:
    """The cheapest that can be had: what is listed may be gone."""
    thought = f"The cheapest {kind} first"
    for offer in offers:
        try:
            kept: Hold = yield Call(hold, offer=offer["id"], seconds=seconds, thought=thought, plan=plan("hold"))
        except CallFailed:
            thought = f"{offer['name']} is gone; the next one, then"
        else:
            return kept
    return None


def give_back(held: list[Hold], why: str) -> Steps:
    if held:
        yield [Call(release, hold=kept["id"], thought=why, plan=plan("give back")) for kept in held]


def price_of(held: list[Hold], offers: Iterable[Offer]) -> int:
    wanted = {kept["offer"] for kept in held}
    return sum(offer["price_cents"] for offer in offers if offer["id"] in wanted)


STAGES = ("search", "hold", "ask the traveller", "book", "itinerary")


def plan(now: str) -> list[dict[str, str]]:
    """The journey's stages, for people who read along: which are done, which is next."""
    if now not in STAGES:
        return [{"next": now}]
    at = STAGES.index(now)
    return [{"done" if stage < at else "next" if stage == at else "later": name} for stage, name in enumerate(STAGES)]
