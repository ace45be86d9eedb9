"""Model providers without the internet: one local HTTP server that speaks OpenAI chat completions and responses and
Anthropic messages, streamed or not, and says what a script says. The real client libraries work with it unchanged.

It imports neither Django nor anything of the product, so that it lives and dies apart from both.

As a process: `python -m demo.providers --port 8011 --scenario support=demo.agents.support_script:decide`
(port 0 takes a free one; the address is printed). In a test:

    from tests.rig.providers import running_providers     # or the fixture `providers`
    from demo.providers.turns import turn, say, think, call, Call, Usage
    from demo.providers.faults import Fault

    with running_providers() as providers:
        providers.script("my-model", [
            turn(think("An order."), call("lookup", order_id="o-1"), call("lookup", order_id="o-2")),
            turn(Call("refund", '{"order_id": "o-1"'), faults=(Fault("server_error", times=2),)),   # raw arguments
            "Done.",
        ])
        providers.script("other", lambda asked: "Yes." if asked.results_of("lookup") else call("lookup", id="o-1"))
        providers.fault("rate_limit", model="my-model", turn=1, times=1, retry_after=2)
        OpenAIProvider(base_url=providers.openai_url, api_key="any")        # or HOLDFAST…/OPENAI_BASE_URL
        AnthropicProvider(base_url=providers.anthropic_url, api_key="any")

Which scenario: the `model` of the request (an unknown one is a 404, a missing key a 401). Which turn: the number of
the model's own answers in the request, never of requests: the same request is answered with the same bytes and the
same ids (`toolu_<model>_<turn>_<place>`); only the request-id header is new. Where older turns were left out of a
request, the ids of the calls that are left tell the turn. A turn more than there are is a 400 that says so. Usage is
counted from the bytes of the request (counting.py) unless the turn gives its own.

Faults are in faults.py. `hold` waits until release(): kill a worker in the middle of an answer without a clock. A
request that is asked while nobody listens: `with providers.away():`.

Over HTTP: POST /scenarios {"model", "turns": [turns.Turn.parse], "context"?}, GET /scenarios,
POST /faults {"kind" (faults.KINDS), "model"?, "turn"?, "times"? (1; null: until removed), "seconds"?, "retry_after"?,
"after"?, "share"?}, GET and DELETE /faults, POST /release, GET /requests?model=… (seen.Seen), DELETE /requests.
"""
