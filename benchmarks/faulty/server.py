"""A chat server on this machine: it plays one script for every attempt, and at chosen requests it fails in a chosen way.

What it answers depends on the conversation alone (how often the model has spoken), so a run that was cut off and goes on
gets what it would have got.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SHAPES: tuple[Any, ...] = (
    {}, [], "a text", 7, None, {"choices": None}, {"choices": []}, {"choices": {}}, {"choices": [None]}, {"choices": [5]},
    {"choices": [{}]}, {"choices": [{"message": None}]}, {"choices": [{"message": "hello"}]},
    {"choices": [{"message": {"content": 5}}]}, {"choices": [{"message": {"content": ["a", {"b": 1}]}}]},
    {"choices": [{"message": {"tool_calls": "none"}}]}, {"choices": [{"message": {"tool_calls": [None]}}]},
    {"choices": [{"message": {"tool_calls": [{"type": "function", "function": None}]}}]},
    {"choices": [{"message": {"tool_calls": [{"type": "function", "function": {"name": 3, "arguments": 4}}]}}]},
    {"choices": [{"delta": None}]}, {"choices": [{"delta": {"content": 5}}]}, {"choices": [{"delta": {"tool_calls": 9}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": {}, "function": []}]}}]},
    {"error": None}, {"error": {"message": None}}, {"object": "error", "message": "no", "code": 500},
)  # fmt: skip
"""Valid JSON that is no completion, at every depth at which a client might look."""


class ChatServer(ThreadingHTTPServer):
    """`script` holds the model's messages; `faults` maps the number of a request (from 0) to what is done instead."""

    daemon_threads = True

    def __init__(self, script: Sequence[str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.faults: Callable[[int], Callable[[Handler], None] | None] = lambda _: None
        self.asked = 0
        self.failed = 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """A client that was killed is what this is for."""


class Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.whole(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        self.request_body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number, self.server.asked = self.server.asked, self.server.asked + 1
        fault = self.server.faults(number)
        with contextlib.suppress(ConnectionError):
            if fault is None:
                self.proper()
            else:
                self.server.failed += 1
                self.close_connection = True
                fault(self)

    @property
    def streams(self) -> bool:
        return bool(self.request_body.get("stream"))

    @property
    def text(self) -> str:
        said = sum(message["role"] == "assistant" for message in self.request_body["messages"])
        text: str = self.server.script[min(said, len(self.server.script) - 1)]
        return text

    def head(self, status: int, kind: str, length: int | None = None, **more: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if length is not None:
            self.send_header("content-length", str(length))
        else:
            self.send_header("connection", "close")
            self.close_connection = True
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def whole(self, status: int, body: Any, kind: str = "application/json", **more: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.head(status, kind, len(data), **more)
        self.wfile.write(data)

    def proper(self) -> None:
        if not self.streams:
            message = {"role": "assistant", "content": self.text}
            self.whole(200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
            return
        self.head(200, "text/event-stream")
        for piece in self.pieces():
            self.event(piece)
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.wfile.write(b"data: [DONE]\n\n")

    def pieces(self) -> list[dict[str, Any]]:
        cut = [self.text[at : at + 40] for at in range(0, len(self.text), 40)]
        return [{"choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]} for part in cut]

    def event(self, data: Any) -> None:
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()


Fault = Callable[[Handler], None]


def _kind(handler: Handler) -> str:
    return "text/event-stream" if handler.streams else "application/json"


def garbage(rng: random.Random) -> Fault:
    data = rng.randbytes(rng.randint(1, 5000))
    return lambda handler: handler.whole(200, data, _kind(handler))


def garbled_events(rng: random.Random) -> Fault:
    """Lines that begin like events of a stream and hold anything."""
    lines = b"".join(b"data: " + rng.randbytes(rng.randint(1, 60)).replace(b"\n", b"") + b"\n\n" for _ in range(9))
    return lambda handler: handler.whole(200, lines, _kind(handler))


def html(rng: random.Random) -> Fault:
    status, page = rng.choice((200, 200, 502, 503)), b"<!DOCTYPE html><html><body><h1>Bad gateway</h1></body></html>"
    return lambda handler: handler.whole(status, page, "text/html")


def cut_json(rng: random.Random) -> Fault:
    share = rng.random()

    def answer(handler: Handler) -> None:
        data = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": handler.text}}]})
        part = data[: 1 + int(share * (len(data) - 2))].encode()
        handler.whole(200, b"data: " + part + b"\n\n" if handler.streams else part, _kind(handler))

    return answer


def shape(rng: random.Random) -> Fault:
    return shaped(rng.choice(SHAPES))


def shaped(body: Any) -> Fault:
    """Valid JSON, in the answer's own form."""

    def answer(handler: Handler) -> None:
        if handler.streams:
            handler.head(200, "text/event-stream")
            handler.event(body)
            handler.wfile.write(b"data: [DONE]\n\n")
        else:
            handler.whole(200, body)

    answer.__name__ = json.dumps(body)
    return answer


def status(rng: random.Random) -> Fault:
    number = rng.choice((429, 429, 500, 500, 502, 503, 504, 408, 409, 529))
    more = rng.choice(({}, {"retry_after": "0"}, {"retry_after": "0.2"}, {"retry_after": "soon"}, {"retry_after": "-1"},
                       {"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}))  # fmt: skip
    body: Any = rng.choice(
        ({"error": {"message": "overloaded", "code": number}}, {"detail": "no"}, {}, [], "x", b"\xff\xfe")
    )
    return lambda handler: handler.whole(number, body, **more)


def drop_at_once(_: random.Random) -> Fault:
    return lambda handler: None


def drop_in_stream(rng: random.Random) -> Fault:
    share = rng.random()

    def answer(handler: Handler) -> None:
        if handler.streams:
            handler.head(200, "text/event-stream")
            pieces = handler.pieces()
            for piece in pieces[: int(share * len(pieces))]:
                handler.event(piece)
            handler.wfile.write(b'data: {"choices": [{"ind')
        else:
            drop_in_body(rng)(handler)

    return answer


def drop_in_body(rng: random.Random) -> Fault:
    """Fewer bytes than the head said, or than the chunk said."""
    chunked = rng.random() < 0.5

    def answer(handler: Handler) -> None:
        if chunked:
            handler.head(200, _kind(handler), transfer_encoding="chunked")
            handler.wfile.write(b'1000\r\n{"choices": [{"index": 0, ')
        else:
            handler.head(200, _kind(handler), 100_000)
            handler.wfile.write(b'data: {"choices": [{"index": 0, ')
        handler.wfile.flush()

    return answer


def no_http(rng: random.Random) -> Fault:
    data = rng.choice((b"\x16\x03\x01\x02", b"220 mail.example ESMTP\r\n", b"HTTP/1.1 abc\r\n\r\n", b"\n" * 50))

    def answer(handler: Handler) -> None:
        handler.wfile.write(data)
        handler.wfile.flush()

    return answer


def hang(rng: random.Random) -> Fault:
    """Silence: before the head, after it, or within a stream that only says that it is still there."""
    how = rng.choice(("nothing", "head", "comments"))

    def answer(handler: Handler) -> None:
        if how != "nothing":
            handler.head(200, _kind(handler))
        for _ in range(100):
            time.sleep(0.1)
            if how == "comments":
                handler.wfile.write(b": still here\n\n" if handler.streams else b" ")
                handler.wfile.flush()

    answer.__name__ = how
    return answer


def endless(rng: random.Random) -> Fault:
    """A body without an end: of one line, of events, or of spaces before the JSON."""
    how = rng.choice(("line", "events", "spaces"))

    def answer(handler: Handler) -> None:
        handler.head(200, _kind(handler))
        piece = {"choices": [{"index": 0, "delta": {"content": "and so on " * 100}, "finish_reason": None}]}
        event = b"data: " + json.dumps(piece).encode() + b"\n\n"
        block = {"line": b"x" * 65536, "events": event * 60, "spaces": b" " * 65536}[how]
        while True:
            handler.wfile.write(block)

    answer.__name__ = how
    return answer


FAULTS: dict[str, Callable[[random.Random], Fault]] = {
    "garbage": garbage, "garbled events": garbled_events, "html": html, "cut json": cut_json, "wrong shape": shape,
    "status": status, "dropped at once": drop_at_once, "dropped in a stream": drop_in_stream,
    "dropped in a body": drop_in_body, "no http": no_http, "hang": hang, "endless": endless,
}  # fmt: skip
