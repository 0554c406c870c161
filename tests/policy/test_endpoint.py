"""The real openai client against a real HTTP server that says what each test wants it to, faults included."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kernelwright.errors import InfrastructureError, UserError
from kernelwright.policy import ToolSpec
from kernelwright.policy.endpoint import Endpoint, Price
from kernelwright.policy.wire import chat_messages
from kernelwright.trace import Message, ToolCall, Usage

SEARCH = ToolSpec(
    "search", "Find text.", {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": []}
)
ASKED = [Message("system", "Be brief."), Message("user", "Begin.")]
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
TEXT_CALL = '<tool_call>\n{"name": "search", "arguments": {"pattern": "x"}}\n</tool_call>'


class Server(ThreadingHTTPServer):
    """Answers each chat request with the next of `replies`, the last one for ever, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: list[Callable[[Handler], None]] = []
        self.asked: list[dict[str, Any]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.json(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in ("tiny", "small")]})

    def do_POST(self) -> None:
        self.asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(self.asked)
        replies = self.server.replies
        (replies.pop(0) if len(replies) > 1 else replies[0])(self)

    def json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self.body(status, json.dumps(body), "application/json", headers)

    def body(self, status: int, text: str, kind: str, headers: dict[str, str] | None = None) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def says(
    content: str | None = None, *, usage: dict[str, int] | None = USAGE, finish: str = "stop", **more: Any
) -> Callable[[Handler], None]:
    """A good answer, as a whole or as a stream of small pieces, as it was asked for."""

    def reply(handler: Handler) -> None:
        message = {"role": "assistant", "content": content, **more}
        if not handler.asked.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            handler.json(
                200,
                {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "tiny",
                    "choices": [choice],
                    "usage": usage,
                },
            )
            return
        chunks = [piece(delta) for delta in pieces(message)] + [piece({}, finish)]
        if usage and "stream_options" in handler.asked:
            chunks.append(
                {
                    "id": "1",
                    "object": "chat.completion.chunk",
                    "created": 1,
                    "model": "tiny",
                    "choices": [],
                    "usage": usage,
                }
            )
        handler.body(
            200, "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n", "text/event-stream"
        )

    return reply


def pieces(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant"}
    for key in ("reasoning_content", "content"):
        text = message.get(key) or ""
        yield from ({key: text[at : at + 7]} for at in range(0, len(text), 7))
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        yield {
            "tool_calls": [{**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}]
        }
        yield from ({"tool_calls": [{"index": index, "function": {"arguments": letter}}]} for letter in arguments)


def piece(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": [choice]}


def fails(status: int, message: str, headers: dict[str, str] | None = None, **error: Any) -> Callable[[Handler], None]:
    return lambda handler: handler.json(status, {"error": {"message": message, **error}}, headers)


def drops(handler: Handler) -> None:
    """Half of an answer, then the connection is gone."""
    streamed = handler.asked.get("stream")
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream" if streamed else "application/json")
    handler.send_header("content-length", "5000")
    handler.end_headers()
    handler.wfile.write(f"data: {json.dumps(piece({'content': 'ha'}))}\n\n".encode() if streamed else b'{"id": ')
    handler.close_connection = True


def garbles(handler: Handler) -> None:
    handler.body(200, "data: {not json\n\n" if handler.asked.get("stream") else "{not json", "application/json")


def ends_early(handler: Handler) -> None:
    handler.body(200, f"data: {json.dumps(piece({'content': 'ha'}))}\n\n", "text/event-stream")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class Waits(list[float]):
    async def __call__(self, wait_s: float) -> None:
        self.append(wait_s)


def endpoint(server: Server, *replies: Callable[[Handler], None], **options: Any) -> Endpoint:
    server.replies = list(replies)
    return Endpoint("tiny", server.url, **{"api_key": "k", "sleep": Waits(), **options})


def ask(policy: Endpoint, messages: list[Message] = ASKED) -> Message:
    return asyncio.run(policy.next(messages, [SEARCH]))


def test_a_native_call_is_read_and_its_result_goes_back_in_the_same_form(server, stream):
    call = {"id": "abc", "type": "function", "function": {"name": "search", "arguments": '{"pattern": "x"}'}}
    policy = endpoint(
        server, says("I look.", tool_calls=[call], finish="tool_calls"), stream=stream, seed=4, temperature=0.5
    )
    message = ask(policy)
    assert (message.content, message.tool_calls) == ("I look.", (ToolCall("abc", "search", {"pattern": "x"}),))
    assert (message.usage, message.data) == (Usage(100, 20), {"finish": "tool_calls", "native": True})
    ask(policy, [*ASKED, message, Message("tool", "no hit", tool_call_id="abc", name="search", ok=True)])
    first, second = server.asked
    assert (first["model"], first["seed"], first["temperature"], first["tools"][0]["function"]["name"]) == (
        "tiny",
        4,
        0.5,
        "search",
    )
    assert second["messages"][2] == {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    assert second["messages"][3] == {"role": "tool", "tool_call_id": "abc", "content": "no hit"}


def test_each_rollout_is_asked_with_its_own_seed_unless_one_is_set(server):
    begun = [ASKED[0], Message("user", "Begin.", data={"seed": 8})]
    ask(endpoint(server, says("ok")), begun)
    ask(endpoint(server, says("ok"), seed=2), begun)
    ask(endpoint(server, says("ok")))
    assert [asked.get("seed") for asked in server.asked] == [8, 2, None]


def test_a_call_in_the_text_is_read_and_its_result_goes_back_as_text(server, stream):
    policy = endpoint(server, says(f"I look.\n{TEXT_CALL}"), stream=stream)
    message = ask(policy)
    assert message.tool_calls == (ToolCall("call_2_1", "search", {"pattern": "x"}),)
    result = Message("tool", "no hit", tool_call_id="call_2_1", name="search", ok=True)
    ask(policy, [*ASKED, message, result, Message("user", "Answer now.")])
    sent = server.asked[1]["messages"]
    assert sent[2] == {"role": "assistant", "content": f"I look.\n{TEXT_CALL}"}
    assert sent[3] == {"role": "user", "content": "<tool_response>\nsearch: no hit\n</tool_response>\nAnswer now."}


def test_a_call_in_the_reasoning_is_read_and_the_reasoning_kept(server, stream):
    message = ask(endpoint(server, says("", reasoning_content=f"Hm. {TEXT_CALL}"), stream=stream))
    assert [call.name for call in message.tool_calls] == ["search"]
    assert message.data["reasoning"] == f"Hm. {TEXT_CALL}"
    assert chat_messages([message])[0]["content"].startswith("<tool_call>")


def test_reasoning_beside_an_answer_makes_no_calls(server):
    message = ask(endpoint(server, says('{"final_code": "c1"}', reasoning_content=f"Not {TEXT_CALL}")))
    assert message.tool_calls == ()


def test_a_model_that_writes_its_calls_is_stopped_after_each(server, stream):
    policy = endpoint(server, says(TEXT_CALL), says(TEXT_CALL.removesuffix("</tool_call>")), stream=stream)
    ask(policy)
    message = ask(policy)
    assert [asked.get("stop") for asked in server.asked] == [None, ["</tool_call>"]]
    assert (message.content, message.tool_calls[0].name) == (TEXT_CALL, "search")


def test_native_arguments_that_are_no_json_reach_the_toolbox_as_they_are(server):
    call = {"id": "a", "type": "function", "function": {"name": "search", "arguments": "half of {"}}
    assert ask(endpoint(server, says(None, tool_calls=[call]))).tool_calls[0].arguments == {"arguments": "half of {"}


def test_a_server_that_refuses_native_tools_is_asked_without_them_from_then_on(server, stream):
    policy = endpoint(
        server, fails(400, '"auto" tool choice requires --enable-auto-tool-choice'), says(TEXT_CALL), stream=stream
    )
    assert ask(policy).tool_calls[0].name == "search"
    ask(policy)
    assert ["tools" in asked for asked in server.asked] == [True, False, False]


def test_options_that_a_server_does_not_take_are_left_out_one_by_one(server):
    policy = endpoint(
        server,
        fails(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        fails(400, "Unsupported value: 'temperature' does not support 0.5", param="temperature"),
        says("ok"),
        temperature=0.5,
    )
    assert ask(policy).content == "ok"
    last = server.asked[-1]
    assert (last["max_completion_tokens"], "max_tokens" in last, "temperature" in last) == (4096, False, False)


@pytest.mark.parametrize("fault", [
    fails(429, "slow down"), fails(503, "loading"), drops, garbles,
    lambda handler: handler.json(200, {"choices": []}),
    lambda handler: handler.body(200, "<html>proxy</html>", "text/html"),
], ids=["429", "503", "dropped", "garbled", "no choices", "html"])  # fmt: skip
def test_what_can_pass_is_tried_again_with_longer_and_longer_waits(server, stream, fault):
    waits = Waits()
    policy = endpoint(server, says("first"), fault, fault, says("ok"), stream=stream, sleep=waits)
    assert ask(policy).content == "first"
    assert ask(policy).content == "ok"
    assert len(server.asked) == 4
    assert [0.75 <= wait / base <= 1.0 for wait, base in zip(waits, (1.0, 2.0), strict=True)] == [True, True]


def test_a_stream_that_ends_without_a_reason_is_asked_for_again(server):
    assert ask(endpoint(server, ends_early, says("ok"))).content == "ok"


def test_the_wait_that_a_server_asks_for_is_kept(server):
    waits = Waits()
    ask(endpoint(server, fails(429, "slow down", {"retry-after": "17"}), says("ok"), sleep=waits))
    assert waits == [17.0]


@pytest.mark.parametrize(("fault", "told"), [
    (fails(503, "loading\nmodel"), r"failed after 3 tries: loading model"),
    (drops, r"after 3 tries"),
    (garbles, r"after 3 tries"),
], ids=["503", "dropped", "garbled"])  # fmt: skip
def test_retries_are_bounded_and_end_in_one_line(server, stream, fault, told):
    policy = endpoint(server, says("first"), fault, stream=stream, retries=2)
    ask(policy)
    with pytest.raises(InfrastructureError, match=told) as failure:
        ask(policy)
    assert "\n" not in str(failure.value)
    assert len(server.asked) == 4


def test_a_server_that_is_down_gives_one_line_at_once():
    waits = Waits()
    with pytest.raises(
        InfrastructureError, match=r"no server answers at http://127\.0\.0\.1:9/v1.*--base-url"
    ) as failure:
        ask(Endpoint("tiny", "http://127.0.0.1:9/v1", api_key="k", sleep=waits))
    assert waits == []
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(("status", "message"), [
    (404, "The model `tiny` does not exist"), (400, "model 'tiny' not found"), (404, "Not Found"),
])  # fmt: skip
def test_a_model_that_does_not_exist_is_said_with_those_that_do(server, status, message):
    with pytest.raises(UserError, match=r"has no model 'tiny'.*small, tiny"):
        ask(endpoint(server, fails(status, message)))


def test_an_invalid_key_and_spent_credit_are_not_tried_again(server):
    with pytest.raises(UserError, match=r"refuses the key: bad key.*OPENAI_API_KEY"):
        ask(endpoint(server, fails(401, "bad key")))
    with pytest.raises(UserError, match="You exceeded your current quota"):
        ask(endpoint(server, fails(429, "You exceeded your current quota", code="insufficient_quota")))
    assert len(server.asked) == 2


def too_long(limit: int) -> Callable[[Handler], None]:
    """A server whose context holds `limit` characters of messages and reply."""

    def reply(handler: Handler) -> None:
        size = sum(len(message["content"]) for message in handler.asked["messages"]) + handler.asked["max_tokens"]
        (says("ok") if size <= limit else fails(400, f"maximum context length is {limit}; you requested {size}"))(
            handler
        )

    return reply


def long_conversation() -> list[Message]:
    turns = []
    for n in range(6):
        turns.append(Message("assistant", TEXT_CALL, (ToolCall(f"call_{n}", "search", {}),)))
        turns.append(Message("tool", "line\n" * 400, tool_call_id=f"call_{n}", name="search", ok=True))
    return [*ASKED, *turns]


def test_a_conversation_that_does_not_fit_loses_its_oldest_results_first_and_says_so(server, stream):
    message = ask(endpoint(server, too_long(9000), stream=stream), long_conversation())
    assert (message.content, message.data["shortened"]) == ("ok", 3)
    sent = [part["content"] for part in server.asked[-1]["messages"] if part["content"].startswith("<tool_response>")]
    assert [("were cut here" in text, len(text) < 500) for text in sent] == [(True, True)] * 3 + [(False, False)] * 3


def test_a_server_that_breaks_a_stream_that_does_not_fit_is_asked_for_its_reason(server):
    def breaks(handler: Handler) -> None:
        streamed = handler.asked.get("stream")
        (ends_early if streamed and len(handler.asked["messages"][-1]["content"]) > 500 else too_long(9000))(handler)

    message = ask(endpoint(server, breaks), long_conversation())
    assert (message.content, message.data["shortened"]) == ("ok", 3)
    assert "stream_options" not in server.asked[1]


def test_room_for_the_reply_is_given_up_before_any_result(server):
    message = ask(endpoint(server, too_long(14500)), long_conversation())
    assert "shortened" not in message.data
    assert server.asked[-1]["max_tokens"] == 1024


def test_a_conversation_that_cannot_be_made_to_fit_gives_one_line(server):
    with pytest.raises(UserError, match=r"does not fit the context of tiny.*a longer context"):
        ask(endpoint(server, too_long(900)), long_conversation())


def test_usage_that_is_not_reported_is_estimated_and_marked_and_prices_are_counted(server, stream):
    policy = endpoint(server, says("x" * 350, usage=None), stream=stream, price=Price(2.0, 10.0))
    message = ask(policy)
    assert message.usage == Usage(4, 100, pytest.approx((4 * 2 + 100 * 10) / 1e6))
    assert message.data["usage_estimated"] is True
    priced = ask(endpoint(server, says("ok"), stream=stream, price=Price(2.0, 10.0)))
    assert priced.usage == Usage(100, 20, pytest.approx(400e-6))


def test_an_answer_that_was_cut_at_its_length_is_marked(server, stream):
    assert ask(endpoint(server, says("half", finish="length"), stream=stream)).data["finish"] == "length"


def test_without_a_key_the_environments_or_none_is_sent(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert ask(endpoint(server, says("ok"), api_key=None)).content == "ok"
