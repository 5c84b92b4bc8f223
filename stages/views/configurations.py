"""What to copy: the recommended mode, the one for shorter lives, and the runner-up where its text is short."""

from __future__ import annotations

from dataclasses import dataclass

from stages.views import words
from stages.views.document import Study, dig, part
from stages.views.headline import chosen
from stages.views.price import ready
from stages.views.roles import roles, shorter_mode

SHORT_LINES = 12


@dataclass(frozen=True)
class Configuration:
    """A text to copy, with what it is for, where it is documented, and what makes its start warm."""

    title: str
    source: str
    text: str
    warm: str = ""


def configurations(study: Study) -> list[Configuration]:
    """By role, the mode of longer lives first; none where nothing is recommended and a shorter life asks for nothing."""
    texts = dict(dig(study, "verdict", "configurations") or {})
    alone = dig(study, "verdict", "configuration")
    if not texts and alone:
        texts = {chosen(study): alone}
    named = {chosen(study), shorter_mode(study)}
    kept = {mode: str(text) for mode, text in texts.items() if mode in named or len(str(text).splitlines()) <= SHORT_LINES}
    return [_configuration(study, mode, kept[mode]) for mode in dict.fromkeys([*roles(study), *kept]) if mode in kept]


def _configuration(study: Study, mode: str, text: str) -> Configuration:
    role = roles(study).get(mode, "")
    place, stability = (dig(study, "modes", mode, "claim", key) for key in ("documented_at", "stability"))
    source = f"{stability} API: {place}" if place and stability else ""
    title = words.clean(f"{mode}: {role}" if role else mode)
    return Configuration(title, words.clean(source), words.clean_lines(text), words.clean(_warm(study, mode)))


def _warm(study: Study, mode: str) -> str:
    """What the warm start of the study had, for modes that compile kernels; empty for others."""
    seconds = ready(study, mode, "warm")
    if not str(dig(study, "modes", mode, "claim", "transform")).startswith("inductor") or seconds == words.ABSENT:
        return ""
    kept = "TORCHINDUCTOR_CACHE_DIR and TRITON_CACHE_DIR named folders that an earlier worker of the same release and device had filled"
    machine = part(study, "environment")
    two = dig(machine, "support", "one_ptxas", "supported") is False
    one = f"; TRITON_PTXAS_PATH named torch's ptxas ({machine.get('ptxas')}), without which kernels compile anew here" if two else ""
    return f"Warm, {seconds}: {kept}{one}."
