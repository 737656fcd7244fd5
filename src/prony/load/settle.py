"""What an exchange that has ended amounts to: the fault of the transport, or of the stream itself."""

from prony.load.answer import TOKEN_KINDS
from prony.load.exchange import Exchange
from prony.measure.eventlog import Fault

_CUT = (Fault.OK, Fault.CLOSED_EARLY)


def settle(exchange: Exchange) -> None:
    """Decode the rest of the answer, and put the one fault of the exchange and its message in place. Never raises."""
    answer = exchange.answer
    status = answer.response.status
    if status not in (0, 200):
        if exchange.fault in _CUT:
            exchange.fault, exchange.message = Fault.HTTP_STATUS, _refusal(exchange)
        return
    if exchange.fault in (*_CUT, Fault.TIMEOUT, Fault.CANCELLED):
        answer.finish(cut=exchange.closed or exchange.fault is not Fault.OK)
    if exchange.fault is Fault.CLOSED_EARLY and exchange.closed and answer.ended and answer.fault is Fault.OK:
        exchange.fault, exchange.message = Fault.OK, ""
    if exchange.fault in _CUT and answer.fault is not Fault.OK:
        exchange.fault, exchange.message = answer.fault, answer.message
    if exchange.fault is Fault.OK:
        _judge_end(exchange)


def _refusal(exchange: Exchange) -> str:
    response = exchange.answer.response
    wait = f" (Retry-After: {response.retry_after_s:g} s)" if response.retry_after_s is not None else ""
    return f"status {response.status}{wait}: {exchange.answer.refusal()}"


def _judge_end(exchange: Exchange) -> None:
    answer = exchange.answer
    if not answer.ended:
        exchange.fault = Fault.CLOSED_EARLY
        exchange.message = "the stream ended without a finish reason or [DONE]"
    elif not any(kind in TOKEN_KINDS for kind in answer.kind) or answer.usage.completion == 0:
        exchange.fault = Fault.NO_TOKENS
        exchange.message = "the stream ended without a generated token"
