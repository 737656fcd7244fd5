"""Can the numbers of this row be true together? Rules over a row that has aggregates only, such as an imported one.

The bounds come from 435 published rows. Their lengths are drawn from [0.8 L, L], so all ratios to the nominal length
sit near 0.9 (0.88 with ramp and drain) rather than at 1.
"""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

from prony.base.finding import Finding, Severity
from prony.base.units import duration, significant
from prony.measure.registry import metric, plausible
from prony.measure.result import Measurement, Row

# throughput × GPUs / (ISL + OSL) × mean E2EL / concurrency. Of the 435 rows 434 lie in 0.70 … 0.91 once GPU counts are
# corrected (the lowest are overloaded prefill pools that queue 85 % of the time); the other one has 0.02. A median
# instead of the mean is up to 2 times off on skewed rows (1,462 history rows: 0.42 … 0.97), hence the wider bounds.
LITTLE_WARN, LITTLE_INVALID = (0.65, 1.05), (0.5, 1.4)
LITTLE_BY_MEDIAN = (0.35, 1.6)
LITTLE_USUAL = 0.875
# (E2EL - TTFT) / (OSL × TPOT): 0.87 … 0.92 in all 435 rows.
DECODE_WARN, DECODE_INVALID = (0.75, 1.05), (0.5, 1.5)
# A row in milliseconds is off by 1,000; nothing real comes near half of that.
MILLISECONDS = 400.0
NEARLY_NOTHING = 1e-9
# Published floats agree to 1e-15; rows that were rounded to 4 digits must still pass.
IDENTITY_TOLERANCE = 1e-3
TOKEN_TOLERANCE = 0.01
# Published means and medians of TPOT end at 0.63 s and begin above 2 ms, so milliseconds taken for seconds lie above.
SLOW_TPOT_S = 2.0
STATS = ("mean", "p50", "p90", "p95", "p99", "p999")
PERCENTILES = STATS[1:]

RowRule = Callable[[Row], Iterator[Finding]]


def judge_row(row: Row) -> tuple[Finding, ...]:
    """Return the verdicts about a row by its own numbers; none means that they do not contradict each other."""
    return _judged(row, ROW_RULES)


def judge_measured(row: Row) -> tuple[Finding, ...]:
    """Return the verdicts that hold for a row measured here, whose identities are exact."""
    return _judged(row, MEASURED_RULES)


def _judged(row: Row, rules: tuple[RowRule, ...]) -> tuple[Finding, ...]:
    """Judge by the rules; numbers that cannot be are told alone, since nothing follows from them."""
    impossible = tuple(impossible_values(row))
    return impossible or tuple(finding for rule in rules for finding in rule(row))


def _verdict(rule: str, severity: Severity, message: str, fix: str) -> Finding:
    return Finding(rule=f"row/{rule}", severity=severity, message=message, fix=fix)


def impossible_values(row: Row) -> Iterator[Finding]:
    """Every number must be finite and one that its metric can have."""
    wrong = [found for found in row.measurements if not _possible(found)]
    if wrong:
        told = "; ".join(_told(found) for found in wrong[:5])
        more = f"; and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        yield _verdict(
            "impossible-value",
            "invalid",
            f"{len(wrong)} of {len(row.measurements)} numbers cannot be: {told}{more}",
            "the file was damaged or a number is in another unit: get it again, or measure again",
        )


def _possible(found: Measurement) -> bool:
    low, high = plausible(found.metric)
    interval = found.ci95 or (0.0, 0.0)
    return low <= found.value <= high and all(map(math.isfinite, interval)) and interval[0] <= interval[1]


def _told(found: Measurement) -> str:
    low, high = plausible(found.metric)
    stat = "" if found.stat == "value" else f" {found.stat}"
    value = f"{significant(found.value)} {metric(found.metric).unit}"
    if low <= found.value <= high:
        return f"{found.metric}{stat} {value} with an interval that is none"
    return f"{found.metric}{stat} {value} (possible: {significant(low)} to {significant(high)})"


def nothing_served(row: Row) -> Iterator[Finding]:
    """A valid load serves something."""
    for key in ("tput_per_gpu", "tput"):
        if row.value(key) == 0:
            yield _verdict("nothing-served", "invalid", f"{key} is 0: nothing was served", "measure again")


def slow_tokens(row: Row) -> Iterator[Finding]:
    """Seconds between tokens are more likely milliseconds in the wrong unit."""
    for stat in ("mean", "p50"):
        tpot = row.value("tpot", stat)
        if tpot is not None and tpot > SLOW_TPOT_S:
            yield _verdict(
                "slow-tokens",
                "warn",
                f"{stat} TPOT is {duration(tpot)}; it looks like milliseconds taken for seconds",
                "check the unit of the source's latencies",
            )
            return


def latency_parts(row: Row) -> Iterator[Finding]:
    """The first token cannot come after the last: no mean or median TTFT exceeds that of E2EL."""
    for stat in ("mean", "p50"):
        ttft, e2el = row.value("ttft", stat), row.value("e2el", stat)
        if ttft is not None and e2el is not None and ttft > e2el * (1 + IDENTITY_TOLERANCE):
            yield _verdict(
                "latency-parts",
                "invalid",
                f"{stat} TTFT {duration(ttft)} is longer than {stat} E2EL {duration(e2el)}",
                "one of both is in another unit or of another run: look at the run it came from",
            )


def own_rates(row: Row) -> Iterator[Finding]:
    """Counts / duration = rate, throughput / devices = throughput per device: all from one log, so exact."""
    seconds = row.value("duration")
    per = (("request_rate", "requests_completed"), ("input_tput", "input_tokens"), ("output_tput", "output_tokens"))
    expected = [(rate, row.value(count), seconds, f"{count} / duration") for rate, count in per]
    expected += [
        (f"{name}tput_per_gpu", row.value(f"{name}tput"), float(row.gpus_used), f"{name}tput / {row.gpus_used} devices")
        for name in ("", "input_", "output_")
    ]
    for key, whole, divisor, words in expected:
        value = row.value(key)
        if value is None or whole is None or not divisor:
            continue
        if not math.isclose(value, whole / divisor, rel_tol=IDENTITY_TOLERANCE):
            yield _verdict(
                "own-rates",
                "invalid",
                f"{key} {significant(value)} is not {words} = {significant(whole / divisor)}",
                "the result was changed after it was measured: measure again",
            )


def own_concurrency(row: Row) -> Iterator[Finding]:
    """A closed loop never has more in flight than asked: rate × mean E2EL cannot exceed the concurrency."""
    rate, latency = row.value("request_rate"), row.value("e2el", "mean")
    if rate is None or latency is None or rate * latency <= row.concurrency * LITTLE_WARN[1]:
        return
    yield _verdict(
        "littles-law",
        "invalid",
        f"{significant(rate)} req/s × {duration(latency)} are {significant(rate * latency)} requests in flight,"
        f" but {row.concurrency} were asked",
        "the result was changed after it was measured: measure again",
    )


def littles_ratio(row: Row) -> tuple[float, bool] | None:
    """Return k = tput × mean E2EL / (ISL + OSL) / concurrency, and whether a median stood in for the mean.

    k is the mean share of the nominal length when throughput, latency, lengths, concurrency and GPU count agree.
    """
    per_gpu, mean = row.value("tput_per_gpu"), row.value("e2el", "mean")
    latency = mean if mean is not None else row.value("e2el", "p50")
    if per_gpu is None or latency is None or not row.isl or not row.osl or row.concurrency <= 0:
        return None
    k = per_gpu * row.gpus_used / (row.isl + row.osl) * latency / row.concurrency
    return k, mean is None


def littles_law(row: Row) -> Iterator[Finding]:
    """Throughput × latency must give the asked concurrency."""
    found = littles_ratio(row)
    if found is None:
        return
    k, by_median = found
    warn, invalid = (LITTLE_BY_MEDIAN, LITTLE_BY_MEDIAN) if by_median else (LITTLE_WARN, LITTLE_INVALID)
    if warn[0] <= k <= warn[1]:
        return
    hint = "; latencies look like milliseconds" if k > MILLISECONDS else _other_count(row, k)
    yield _verdict(
        "littles-law",
        "warn" if invalid[0] <= k <= invalid[1] else "invalid",
        f"throughput × latency accounts for {significant(k * row.concurrency)} of {row.concurrency} requests in flight"
        f" (k = {significant(k)}, expected {warn[0]} to {warn[1]}){hint}",
        "one of throughput, latency, lengths, concurrency and GPU count is wrong, or the server stood idle while it was"
        " measured: look at the run it came from",
    )


def _other_count(row: Row, k: float) -> str:
    """Say for how many devices the numbers would agree, when that is a whole number of the same order."""
    if k < NEARLY_NOTHING or row.gpus_used == 0:
        return ""
    count = row.gpus_used * LITTLE_USUAL / k
    whole = round(count)
    if whole in (0, row.gpus_used) or abs(count / whole - 1) > 0.05 or not 1 / 8 <= whole / row.gpus_used <= 8:
        return ""
    return f"; they agree for {whole} devices instead of {row.gpus_used}"


def decode_time(row: Row) -> Iterator[Finding]:
    """E2EL - TTFT must be the output length times TPOT."""
    e2el, ttft, tpot = row.value("e2el", "mean"), row.value("ttft", "mean"), row.value("tpot", "mean")
    if e2el is None or ttft is None or not tpot or not row.osl:
        return
    ratio = (e2el - ttft) / row.osl / tpot
    if DECODE_WARN[0] <= ratio <= DECODE_WARN[1]:
        return
    scale = max(ratio, 1 / ratio) if ratio > 0 else 1.0
    unit = "; seconds and milliseconds look mixed" if scale > MILLISECONDS else ""
    yield _verdict(
        "decode-time",
        "warn" if DECODE_INVALID[0] <= ratio <= DECODE_INVALID[1] else "invalid",
        f"mean E2EL {duration(e2el)} − mean TTFT {duration(ttft)} is {significant(ratio)} × OSL {row.osl} × mean TPOT"
        f" {duration(tpot)}, expected {DECODE_WARN[0]} to {DECODE_WARN[1]}{unit}",
        "output lengths are not what the row says, or a latency is in another unit: look at the run it came from",
    )


def token_identity(row: Row) -> Iterator[Finding]:
    """Input + output = total, all over the same GPUs."""
    tokens_in, tokens_out, total = (row.value(f"{name}tput_per_gpu") for name in ("input_", "output_", ""))
    if tokens_in is None or tokens_out is None or not total:
        return
    if abs((tokens_in + tokens_out) / total - 1) > TOKEN_TOLERANCE:
        yield _verdict(
            "token-identity",
            "invalid",
            f"input {significant(tokens_in)} + output {significant(tokens_out)} is not total"
            f" {significant(total)} tok/s/GPU over {row.gpus_used} GPUs",
            "a throughput or a GPU count is wrong: check the denominators of the source",
        )


def interactivity_identity(row: Row) -> Iterator[Finding]:
    """Interactivity is 1 / TPOT at the same statistic."""
    for stat in STATS:
        rate, tpot = row.value("interactivity", stat), row.value("tpot", stat)
        if rate is not None and tpot is not None and abs(rate * tpot - 1) > IDENTITY_TOLERANCE:
            yield _verdict(
                "interactivity",
                "invalid",
                f"{stat} interactivity {significant(rate)} tok/s/user is not 1 / TPOT {duration(tpot)}",
                "trust the TPOT: interactivity is derived from it",
            )


def percentile_order(row: Row) -> Iterator[Finding]:
    """Percentiles of one sample never fall (interactivity, whose tail is the slow one, never rises)."""
    for key, sign in (("ttft", 1), ("tpot", 1), ("itl", 1), ("event_gap", 1), ("e2el", 1), ("interactivity", -1)):
        pairs = [(stat, row.value(key, stat)) for stat in PERCENTILES]
        known = [(stat, sign * value) for stat, value in pairs if value is not None]
        for (low, low_value), (high, high_value) in pairwise(known):
            if high_value < low_value:
                yield _verdict(
                    "percentile-order",
                    "invalid",
                    f"{key} {high} {significant(sign * high_value)} contradicts {low} {significant(sign * low_value)}",
                    "the percentiles are not of one sample: measure again",
                )


def gpu_count(row: Row) -> Iterator[Finding]:
    """The GPU count must be that of the topology."""
    if row.gpus_used != row.topology.gpus:
        yield _verdict(
            "gpu-count",
            "warn",
            f"{row.gpus_used} GPUs in use, but the topology spans {row.topology.gpus}",
            "say replicas, tp, pp, pcp and dp of every pool; EP and DCP add no GPUs",
        )


MEASURED_RULES: tuple[RowRule, ...] = (
    own_rates,
    own_concurrency,
    latency_parts,
    token_identity,
    interactivity_identity,
    percentile_order,
)
ROW_RULES: tuple[RowRule, ...] = (
    nothing_served,
    slow_tokens,
    latency_parts,
    gpu_count,
    littles_law,
    decode_time,
    token_identity,
    interactivity_identity,
    percentile_order,
)
