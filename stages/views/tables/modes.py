"""The modes side by side, what is recommended when, and what is not recommended and why."""

from __future__ import annotations

from stages.analysis.lifetimes import CACHES
from stages.views import words
from stages.views.document import Study, baseline, decode_batches, dig, label, mode_names, part, rates, sort_numeric, why_not
from stages.views.price import ready
from stages.views.tables.several import RULE
from stages.views.tables.table import Table, dropped_empty, versus


def summary(study: Study, intervals: bool = True) -> Table:
    """Every mode that ran: speed-ups, start, goodput, evidence, answers. A mode that may not be ranked gets its reason."""
    batches = decode_batches(study)
    columns = [
        "mode",
        "sequence",
        *(f"decode {batch}" for batch in batches),
        "ready cold",
        "ready warm",
        "goodput, 1/s",
        "path",
        "answers",
        "factorial",
        "not ranked because",
    ]
    names = mode_names(study)
    rows = [_summary_row(study, name, batches, intervals) for name in names if _ran(study, name)]
    note = (
        f"Speed-up = {baseline(study)} / mode, above 1 is faster; in steady state, so start-up is not in it: it stands in its own columns."
        " Undecided: the interval reaches into the margin, the larger of 1 % and what two equal workers differ by (A/A pairs)."
        " Refuted: a start that was not in the cache state that it claims (see Startup phases)."
        f" A mode whose path or answers failed gets no speed-up. {RULE}"
    )
    absent = [name for name in names if not _ran(study, name)]
    note += f" Without any result, so not in this table: {', '.join(absent)}." if absent else ""
    return dropped_empty(Table("Side by side", columns, rows, note, frozenset({"path", "answers", "factorial", "not ranked because"})))


def _ran(study: Study, name: str) -> bool:
    """Whether a row about this mode would hold more than dashes."""
    found = [evidence_word(study, name), *_starts(study, name), goodput(study, name)]
    return any(word != words.ABSENT for word in found)


def _starts(study: Study, name: str) -> list[str]:
    return [ready(study, name, state) for state in ("cold", "warm")]


def _summary_row(study: Study, name: str, batches: list[str], intervals: bool) -> list[str]:
    mode = part(study, "modes", name)
    proofs = [evidence_word(study, name), str(dig(mode, "correctness", "verdict") or words.ABSENT)]
    if why_not(study, name):
        unseen = proofs[0] == words.ABSENT  # no path was looked at: its starts stand for themselves
        starts = _starts(study, name) if unseen else [words.ABSENT] * 2
        return [name, *[words.ABSENT] * (len(batches) + 1), *starts, words.ABSENT, *proofs, words.ABSENT, why_not(study, name)]
    steps = part(mode, "steady_state")
    speedups = [versus(steps.get("sequence"), intervals), *(versus(dig(steps, "decode", batch), intervals) for batch in batches)]
    if name == baseline(study):
        speedups = ["baseline"] * len(speedups)
    factorial = str(dig(steps, "sequence", "vs_baseline", "factorial") or words.ABSENT)
    return [name, *speedups, *_starts(study, name), goodput(study, name), *proofs, factorial, ""]


def evidence_word(study: Study, name: str) -> str:
    """The verdict on the mode's path, or a dash."""
    return str(dig(study, "modes", name, "evidence", "verdict") or words.ABSENT)


def goodput(study: Study, name: str) -> str:
    """max_goodput, else the goodput at the highest rate tried."""
    found = words.number(dig(study, "modes", name, "load", "max_goodput"))
    if found is not None:
        bound = "≥ " if dig(study, "modes", name, "load", "max_goodput_is_lower_bound") else ""
        return bound + words.plain(found)
    tried = [rate for rate in rates(study) if dig(study, "modes", name, "load", rate)]
    return words.plain(dig(study, "modes", name, "load", tried[-1], "request_goodput")) if tried else words.ABSENT


def not_ranked(study: Study) -> Table:
    """Modes that were refuted, gave wrong answers, failed, were skipped or cannot run here, each with the reason."""
    rows = [[name, label(study, name), why_not(study, name).partition(": ")[2]] for name in mode_names(study) if why_not(study, name)]
    return Table("Modes not ranked", ["mode", "what", "why"], rows, texts=frozenset({"what", "why"}))


def recommended(study: Study) -> Table:
    """The choice for each lifetime and arrival rate; completions count start-up."""
    rows = []
    found = part(study, "verdict", "choices")
    for lifetime in sort_numeric(found):
        for rate in sort_numeric(found[lifetime]):
            rows.append([_lifetime(lifetime), words.rate(rate), *_choice(found[lifetime][rate])])
    columns = ["worker lifetime", "arrivals", "run", "completions", "runner-up", "its completions", "because"]
    note = (
        "From cold caches. Completions are useful ones in the whole life of a worker: start-up and SLO misses are included. Where they are"
        " within 1 % the lower TPOT decides: p99 where every such mode has one (459 requests), else p50; the runner-up is the next by the"
        " same rule. Saturation: as many arrivals as a mode can take."
    )
    return dropped_empty(Table("By lifetime and arrivals", columns, rows, note, frozenset({"arrivals", "run", "runner-up", "because"})))


def _choice(choice: object) -> list[str]:
    runner_up = dig(choice, "runner_up")
    counts = [words.count(dig(choice, key)) for key in ("completions", "runner_up_completions")]
    return [
        str(dig(choice, "mode") or words.ABSENT),
        counts[0],
        str(runner_up or words.ABSENT),
        counts[1],
        str(dig(choice, "reason") or ""),
    ]


def _lifetime(key: str) -> str:
    try:
        return words.chosen_seconds(float(key))
    except ValueError:
        return key


def break_even(study: Study) -> Table:
    """From which lifetime on a mode stays ahead of the baseline, per arrival rate and cache state."""
    rows = []
    for name in mode_names(study):
        by_rate = {} if why_not(study, name) or name == baseline(study) else part(study, "modes", name, "lifetime", "break_even")
        for rate in sort_numeric(by_rate):
            rows.append([name, words.rate(rate), *(answer_of(dig(by_rate, rate, state)) for state in CACHES)])
    columns = ["mode", "arrivals", *(f"from {state}" for state in CACHES)]
    note = (
        f"The smallest worker lifetime beyond which the mode stays ahead of {baseline(study)} in useful completions;"
        f" “always”: never behind it at any lifetime, also where {baseline(study)} has none to be ahead of;"
        " “never”: it stays ahead from no lifetime on. Such a mode can still be the one to run: where completions are within 1 %,"
        " the lower TPOT decides."
    )
    return dropped_empty(Table("Break-even", columns, rows, note, frozenset({"arrivals"})))


def answer_of(found: object) -> str:
    """A break-even in words: a lifetime with its interval, or always, never, undecided."""
    answer = dig(found, "answer")
    if answer == "at" and words.number(dig(found, "lifetime_s")) == 0:
        return "always"
    if answer != "at":
        return str(answer or words.ABSENT)
    low, high = dig(found, "low_s"), dig(found, "high_s")
    around = "" if words.number(low) is None or words.number(high) is None else f" [{words.seconds(low)}, {words.seconds(high)}]"
    return words.seconds(dig(found, "lifetime_s")) + around
