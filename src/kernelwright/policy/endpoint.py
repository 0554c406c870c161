"""A policy behind any OpenAI-compatible server: hosted models, vLLM, llama.cpp, `transformers serve`, and so on.

Servers differ in what they take, so an option that one refuses (native tool calls, a seed, a temperature) is left out
from then on. Calls that a model wrote as text are read from it, out of its reasoning too. What can pass is retried with
back-off; all else ends in one line: a server that is down, a model that is not there, a key that is not valid, a
conversation that does not fit. Limits on tokens and cost are the rollout's.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import openai

from kernelwright.calls import find_calls, parse_calls
from kernelwright.errors import InfrastructureError, KernelwrightError, UserError
from kernelwright.policy import ToolSpec
from kernelwright.policy.wire import (
    Garbled,
    Reply,
    chat_messages,
    chat_tools,
    read_completion,
    read_stream,
    without_old_results,
)
from kernelwright.trace import Message, Usage

ANSWER_TIMEOUT_S = 600.0
LONGEST_ANSWER_BYTES = 64 * 2**20
"""More than any model says at once, each token in a piece of its own; a server that sends more has no end."""
CHARS_PER_TOKEN = 3.5
"""For servers that report no usage; such counts are marked as estimated in the message's data."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
END_OF_CALL = "</tool_call>"
"""Where a model that writes its calls as text is stopped, since small ones go on and invent the result."""
LEAST_REPLY_TOKENS = 1024
"""Where the conversation does not fit, room for the reply is halved down to this before old results are cut."""
OPTIONS = ("tools", "seed", "temperature", "stream_options", "stop", "max_tokens", "max_completion_tokens")
"""What a request can do without."""

_OVERFLOW = re.compile(
    r"context.{0,3}(?:length|window|size)|available context|(?:prompt|input|request).{0,30}too (?:long|large)"
    r"|too many tokens|exceeds?.{0,40}context",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(r"model.{0,80}(?:not found|not exist|unknown|invalid|not available|not a valid)", re.IGNORECASE)


class _Overflow(Exception):
    """The conversation and the room for the reply are longer than the model's context."""


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    prompt_usd: float
    completion_usd: float


@dataclass
class Endpoint:
    """A chat model at `base_url`. Raises UserError and InfrastructureError, each with one line."""

    model: str
    base_url: str
    api_key: str | None = None
    """Default: the environment's OPENAI_API_KEY, else "none", which local servers accept."""
    tools: Literal["auto", "native", "text"] = "auto"
    """auto: offered natively until the server refuses them; calls in the text are read in any case."""
    stream: bool = True
    temperature: float | None = None
    seed: int | None = None
    """Default: the rollout's, so that every attempt has its own."""
    max_reply_tokens: int | None = 4096
    price: Price | None = None
    timeout_s: float = ANSWER_TIMEOUT_S
    """For the whole answer, or between two pieces of a stream."""
    retries: int = 5
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    left_out: set[str] = field(default_factory=set)
    """Request options that the server was found not to take."""
    writes_calls: bool = False
    """Whether the model was seen to write calls as text though it was offered native ones."""
    _answered: bool = False
    """Whether the server ever gave an answer: one that is not there at all is not waited for."""

    def __post_init__(self) -> None:
        if self.tools == "text":
            self.left_out.add("tools")

    def _client(self) -> openai.AsyncOpenAI:
        """A client for one message: connections belong to an event loop, and this object may outlive several."""
        key = self.api_key or os.environ.get("OPENAI_API_KEY") or "none"
        timeout = openai.Timeout(self.timeout_s, connect=10.0)
        # Retries are made here, in one place, so that a stream that broke and a garbled answer are treated like a 429.
        http = openai.DefaultAsyncHttpxClient(event_hooks={"response": [_bounded]})
        return openai.AsyncOpenAI(api_key=key, base_url=self.base_url, timeout=timeout, max_retries=0, http_client=http)

    @property
    def name(self) -> str:
        return f"{self.model} at {self.base_url}"

    async def next(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Message:
        """The model's next message; its `data` says what was peculiar: finish, reasoning, native, shortened, …"""
        shown, shortened, room = list(messages), 0, self.max_reply_tokens
        async with self._client() as client:
            while True:
                try:
                    reply = await self._asked(client, self._request(shown, tools, room))
                    break
                except _Overflow as overflow:
                    if room and room > LEAST_REPLY_TOKENS:
                        room = max(room // 2, LEAST_REPLY_TOKENS)
                        continue
                    shown, cut = without_old_results(shown)
                    shortened += cut
                    if not cut:
                        raise self._too_long(overflow) from None
        return self._message(whole(reply), shown, f"call_{len(messages)}", shortened)

    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSpec], room: int | None) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.model,
            "messages": chat_messages(messages),
            "tools": chat_tools(tools) or None,
            "temperature": self.temperature,
            "seed": self.seed if self.seed is not None else _seed(messages),
            "stop": [END_OF_CALL] if "tools" in self.left_out or self.writes_calls else None,
            "stream_options": {"include_usage": True} if self.stream else None,
            "max_completion_tokens" if "max_tokens" in self.left_out else "max_tokens": room,
        }
        return {key: value for key, value in request.items() if value is not None and key not in self.left_out}

    async def _asked(self, client: openai.AsyncOpenAI, request: dict[str, Any]) -> Reply:
        """The server's answer, with retries; options that it does not take are left out one by one.

        After a stream that broke the answer is asked for as a whole: some servers say only then what the matter is.
        """
        failures, stream = 0, self.stream
        while True:
            try:
                reply = await self._answer(client, request, stream)
                self._answered = True
                return reply
            except openai.APIStatusError as error:
                if self._leaves_out(error, request):
                    continue
                if not _can_pass(error):
                    raise await self._refusal(client, error) from None
                failure: Exception = error
            except (openai.APIError, ValueError, RecursionError, TimeoutError, Garbled) as error:
                if _OVERFLOW.search(str(error)):
                    raise _Overflow(_words(error)) from None
                failure, stream = error, False
            absent = _is_absence(failure) and not self._answered
            if absent or failures >= self.retries:
                raise self._given_up(failure, failures + 1) from None
            failures += 1
            await self.sleep(_wait_s(failure, failures))

    async def _answer(self, client: openai.AsyncOpenAI, request: dict[str, Any], stream: bool) -> Reply:
        if not stream:
            plain = {key: value for key, value in request.items() if key != "stream_options"}
            async with asyncio.timeout(self.timeout_s):
                return read_completion(await client.chat.completions.create(**plain))
        async with await client.chat.completions.create(**request, stream=True) as pieces:
            return await read_stream(pieces, self.timeout_s)

    def _leaves_out(self, error: openai.APIStatusError, request: dict[str, Any]) -> bool:
        """Whether `error` complains of an option that a request can do without; it is then left out, now and later."""
        told = f"{error.message} {error.param or ''}".lower()
        if error.status_code not in (400, 404, 405, 422, 500, 501) or _OVERFLOW.search(told):
            return False
        for option in OPTIONS:
            word = "tool" if option == "tools" else option
            if option in request and word in told and not (option == "tools" and self.tools == "native"):
                self.left_out.add(option)
                value = request.pop(option)
                if option == "max_tokens":
                    request["max_completion_tokens"] = value
                return True
        return False

    async def _refusal(self, client: openai.AsyncOpenAI, error: openai.APIStatusError) -> Exception:
        """What to raise for an answer that asking again cannot change."""
        words = _words(error)
        if error.status_code in (401, 403):
            return UserError(f"{self.base_url} refuses the key: {words}", "a valid key", "set OPENAI_API_KEY")
        if _OVERFLOW.search(error.message):
            return _Overflow(words)
        if error.status_code == 404 or _NO_MODEL.search(error.message):
            return await self._no_model(client, words)
        return UserError(f"{self.base_url} refuses the request (HTTP {error.status_code}): {words}",
                         "a server that takes chat completions")  # fmt: skip

    async def _no_model(self, client: openai.AsyncOpenAI, words: str) -> KernelwrightError:
        try:
            models = sorted([model.id async for model in client.models.list()])
        except (openai.APIError, ValueError, TypeError, AttributeError):
            return UserError(f"{self.base_url} has no chat completions: {words}", "an OpenAI-compatible server",
                             "a base URL that ends in /v1")  # fmt: skip
        return UserError(f"{self.base_url} has no model {self.model!r}: {words}", "a model that the server has",
                         ", ".join(models[:20]))  # fmt: skip

    def _too_long(self, overflow: _Overflow) -> UserError:
        return UserError(f"the conversation does not fit the context of {self.model}: {overflow}", "a longer context",
                         "another model, or a server started with more")  # fmt: skip

    def _given_up(self, failure: Exception, tries: int) -> InfrastructureError:
        after = f" after {tries} tries" if tries > 1 else ""
        if isinstance(failure, openai.APITimeoutError | TimeoutError):
            return InfrastructureError(f"{self.base_url} did not answer in time{after}",
                                       f"an answer within {self.timeout_s:g} s", "whether the server is up")  # fmt: skip
        if _is_absence(failure):
            return InfrastructureError(f"no server answers at {self.base_url}{after}: {_root(failure)}",
                                       "a running OpenAI-compatible server", "its address with --base-url")  # fmt: skip
        return InfrastructureError(f"{self.base_url} failed{after}: {_root(failure)}", "a healthy server",
                                   "again later; what was done so far is kept")  # fmt: skip

    def _message(self, reply: Reply, sent: Sequence[Message], prefix: str, shortened: int) -> Message:
        self.writes_calls = self.writes_calls or bool(not reply.calls and find_calls(reply.text))
        usage, estimated = self._usage(reply, sent)
        notes = {"finish": reply.finish, "reasoning": reply.reasoning, "native": bool(reply.calls),
                 "shortened": shortened, "usage_estimated": estimated}  # fmt: skip
        # Servers that split off the reasoning leave a call in the middle of it there, and nothing in the content.
        written, _ = parse_calls(reply.text if reply.text.strip() else reply.reasoning, prefix)
        native = [replace(call, id=call.id or f"{prefix}_{n}") for n, call in enumerate(reply.calls, 1)]
        return Message("assistant", reply.text, tuple(native or written), usage=usage,
                       data={key: value for key, value in notes.items() if value})  # fmt: skip

    def _usage(self, reply: Reply, sent: Sequence[Message]) -> tuple[Usage, bool]:
        """The reply's tokens, and whether they are estimated."""
        prompt, completion = reply.prompt_tokens, reply.completion_tokens
        estimated = prompt is None or completion is None
        if prompt is None or completion is None:
            said = len(reply.text) + len(reply.reasoning) + sum(len(str(call.arguments)) for call in reply.calls)
            prompt = round(sum(len(message.content) for message in sent) / CHARS_PER_TOKEN)
            completion = round(said / CHARS_PER_TOKEN)
        price = self.price
        cost_usd = (prompt * price.prompt_usd + completion * price.completion_usd) / 1e6 if price else None
        return Usage(prompt, completion, cost_usd), estimated


async def _bounded(response: Any) -> None:
    """Have an answer's body end, with a failure, where it does not end by itself."""
    body = response.aiter_bytes

    async def counted(*arguments: Any) -> AsyncIterator[bytes]:
        seen = 0
        async for part in body(*arguments):
            seen += len(part)
            if seen > LONGEST_ANSWER_BYTES:
                raise Garbled(f"an answer of more than {LONGEST_ANSWER_BYTES >> 20} MiB")
            yield part

    response.aiter_bytes = counted


def _is_absence(failure: Exception) -> bool:
    """Whether nobody was there at all: no connection was made, or nothing ever came of it."""
    cause = type(failure.__cause__).__name__
    return isinstance(failure, openai.APITimeoutError | TimeoutError) or cause == "ConnectError"


def whole(reply: Reply) -> Reply:
    """`reply` with the end of a call that stopped it, which servers leave out."""
    opened = reply.text.rfind("<tool_call>")
    if reply.finish != "stop" or opened < 0 or END_OF_CALL in reply.text[opened:]:
        return reply
    return replace(reply, text=f"{reply.text.rstrip()}\n{END_OF_CALL}")


def _seed(messages: Sequence[Message]) -> int | None:
    return next((message.data["seed"] for message in messages if "seed" in message.data), None)


def _can_pass(error: openai.APIStatusError) -> bool:
    """Whether asking again may help."""
    if error.code == "insufficient_quota" or _OVERFLOW.search(error.message):
        return False
    return error.status_code in (408, 409, 425, 429) or error.status_code >= 500


def _wait_s(failure: Exception, failures: int) -> float:
    """Seconds until the next try: what the server asks for, else doubling, with jitter."""
    asked = failure.response.headers.get("retry-after", "") if isinstance(failure, openai.APIStatusError) else ""
    if re.fullmatch(r"\d+(\.\d+)?", asked):
        return min(float(asked), LONGEST_WAIT_S)
    return min(FIRST_WAIT_S * 2.0 ** (failures - 1), LONGEST_WAIT_S) * random.uniform(0.75, 1.0)


def _words(error: BaseException) -> str:
    """What a server said, in one short line."""
    body = getattr(error, "body", None)
    said = body.get("message") or body.get("detail") if isinstance(body, dict) else None
    text = said if isinstance(said, str) else str(getattr(error, "message", "") or error or type(error).__name__)
    return " ".join(text.split())[:300]


def _root(error: BaseException) -> str:
    """What came first, in one short line: the client library says no more than that there was an error."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    return _words(error) if first is error else " ".join((str(first) or type(first).__name__).split())[:200]
