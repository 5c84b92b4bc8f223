"""The three badges of the first screen, each a claim with its numbers and a link to the section that proves it."""

from __future__ import annotations

from dataclasses import dataclass

from stages.views.certainty import shifted
from stages.views.document import Study, dig, mode_names, part
from stages.views.headline import chosen
from stages.views.tables.proof import called, twins


@dataclass(frozen=True)
class Badge:
    """A claim that links to its section. `tone`: good, warn, bad, or none (nothing to say)."""

    text: str
    section: str
    tone: str

    @property
    def mark(self) -> str:
        """The tone without colour."""
        return {"good": "✓", "warn": "!", "bad": "✗"}.get(self.tone, "–")


def badges(study: Study) -> list[Badge]:
    """Path proved, answers checked, machine quiet."""
    return [_path_badge(study), _answers_badge(study), _quiet_badge(study)]


def _path_badge(study: Study) -> Badge:
    ran = [name for name in mode_names(study) if part(study, "modes", name, "evidence")]
    proved = [name for name in ran if dig(study, "modes", name, "evidence", "verdict") == "confirmed"]
    name = chosen(study)
    if not ran:
        return Badge("Path: no evidence", "rejected", "none")  # where it says why
    text = f"Path proved: {len(proved)} of {len(ran)} modes" + (f", {name} among them" if name in proved else "")
    return Badge(text, "paths", _tone(len(proved) == len(ran), name, proved))


def _answers_badge(study: Study) -> Badge:
    verdicts = {name: dig(study, "modes", name, "correctness", "verdict") for name in mode_names(study)}
    checked = [name for name, verdict in verdicts.items() if verdict in ("correct", "wrong")]
    correct = [name for name in checked if verdicts[name] == "correct"]
    if not checked:
        return Badge("Answers: not checked", "rejected", "none")
    text = f"Answers checked: {len(correct)} of {len(checked)} modes correct{_num_checks(study)}"
    return Badge(text, "correctness", _tone(correct == checked, chosen(study), correct))


def _num_checks(study: Study) -> str:
    """How much the recommended mode's answer rests on."""
    checks = dig(study, "modes", chosen(study), "correctness", "checks")
    return f" ({len(checks)} checks)" if isinstance(checks, list) and checks else ""


def _tone(complete: bool, name: str, good: list[str]) -> str:
    """A badge vouches for the recommended mode; without one, for all."""
    return "good" if complete or name in good else "warn"


def _quiet_badge(study: Study) -> Badge:
    pairs = twins(study)
    found = [called(pair) for pair in pairs]
    different, close = found.count("different"), found.count("within 5 %")
    if not pairs:
        return Badge("Machine: no A/A pairs", "machine", "none")
    vouching = [word for word, pair in zip(found, pairs, strict=True) if dig(pair, "mode") == chosen(study)] or found
    quiet = not different and vouching.count("within 5 %") == len(vouching)
    if quiet and shifted(study):
        own = f"{chosen(study)} (A/A {len(vouching)} of {len(vouching)})" if chosen(study) else "these pairs"
        return Badge(f"Machine quiet for {own}, not for all ({close} of {len(pairs)})", "machine", "warn")
    text = f"of {len(pairs)} A/A pairs {different} differ, {close} within 5 %, {len(pairs) - different - close} not told apart"
    return Badge(f"{'Machine quiet' if quiet else 'Machine'}: {text}", "machine", "good" if quiet else "warn")
