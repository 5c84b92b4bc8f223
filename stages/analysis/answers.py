"""Joins the records of a study into its answer: attribution.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stages.analysis import bottleneck, eligibility, factorials, floors, lifetimes, middle_way, next_best, services, verdicts
from stages.analysis import rotations as turns
from stages.analysis.reading import StudyRecords
from stages.analysis.speedups import cells_of, compared, repeats, used_factorials
from stages.core.records.answer import Answer, Bottleneck, Floor, ModeAnswer, SequenceTimes, ShapeTimes
from stages.core.records.lifetime import BreakEven, Lifetime
from stages.core.records.plan import Plan
from stages.core.records.steps import SequenceRun
from stages.core.sampling import sampled_indices

WorkOf = Callable[[int, int], floors.Work]
"""(decode batch, context tokens) -> the least work of one step."""


def answer(records: StudyRecords, ceilings: floors.Ceilings | None = None, work_of: WorkOf | None = None) -> Answer:
    """Everything the records say together; parts whose records are missing are absent, never guessed."""
    preferred = used_factorials(records, verdicts.headline(records))
    answers = {mode: mode_answer(preferred, mode, ceilings, work_of) for mode in records.modes}
    joined = {name: factorials.factorial_answer(records, name) for name in records.factorials}
    return Answer(modes=answers, factorials=joined, verdict=verdicts.verdict(records, answers, joined))


def mode_answer(records: StudyRecords, mode: str, ceilings: floors.Ceilings | None, work_of: WorkOf | None) -> ModeAnswer:
    """Step times with their comparison, bottleneck, floor and lifetime of one mode."""
    steps = steady_state(records, mode)
    return ModeAnswer(
        steady_state=steps,
        sequence=sequence(records, mode),
        bottleneck=_bottlenecks(records, mode, steps),
        floor=_floors(records, steps, ceilings, work_of),
        lifetime=lifetime(records, mode),
        repeats=repeats(records, mode),
    )


def steady_state(records: StudyRecords, mode: str) -> dict[str, ShapeTimes]:
    """Step times by shape, each from the first factorial that timed the mode there."""
    found: dict[str, ShapeTimes] = {}
    for rotations, cell in cells_of(records, mode):
        for shape in turns.shapes(rotations):
            times = turns.shape_times(rotations, cell, shape) if shape not in found else None
            if times:
                found[shape] = times.model_copy(update={"vs_baseline": compared(records, mode, rotations, cell, shape)})
    return found


def sequence(records: StudyRecords, mode: str) -> SequenceTimes | None:
    """The headline time of a mode, from the first factorial that ran it through the step sequence."""
    for rotations, cell in cells_of(records, mode):
        mean_us = turns.cell_mean(turns.values_at(rotations, turns.SEQUENCE), cell)
        if mean_us:
            in_s = {key: getattr(mean_us, key) and getattr(mean_us, key) / turns.US_PER_S for key in ("value", "low", "high")}
            run = next(run for run in rotations.sequences if run.cell == cell and not run.voided)
            return SequenceTimes(
                sequence_s=mean_us.model_copy(update=in_s),
                num_steps=rotations.sequence_steps,
                steps_in_trace=rotations.sequence_steps_in_trace,
                tokens_per_s=tokens / in_s["value"] if (tokens := _sampled_tokens(records.plan, run)) else None,
                vs_baseline=compared(records, mode, rotations, cell, turns.SEQUENCE),
            )
    return None


def _sampled_tokens(plan: Plan, run: SequenceRun) -> int | None:
    """Tokens that the sampled steps of the plan make: one a prefill, one an active sequence of a decode step."""
    steps = [step for step in plan.runs for _ in range(step.count)]
    wanted = [steps[index] for index in sampled_indices(len(steps), run.num_steps)]
    decode = [step.size for step in wanted if step.phase == "decode"]
    is_sample = len(wanted) == run.num_steps and len(decode) == run.num_decode_steps
    return sum(decode) + len(wanted) - len(decode) if is_sample else None


def _bottlenecks(records: StudyRecords, mode: str, steps: Mapping[str, ShapeTimes]) -> dict[str, Bottleneck]:
    capture = records.capture[mode].data
    words = bottleneck.words_for(str(records.environment.get("device", "cuda")))
    profiles = {f"{profile.phase}/{profile.size}": profile for profile in (capture.profile if capture else [])}
    breaks = capture.evidence.num_graph_breaks if capture else 0
    return {
        shape: bottleneck.bottleneck(profiles[shape], steps[shape].wall_us.median, words, breaks) for shape in steps if shape in profiles
    }


def _floors(
    records: StudyRecords, steps: Mapping[str, ShapeTimes], ceilings: floors.Ceilings | None, work_of: WorkOf | None
) -> dict[str, Floor]:
    contexts = [record.data.decode_context_tokens for record in records.steady_state.values() if record.data]
    found = {}
    for shape, times in steps.items():
        phase, _, size = shape.partition("/")
        work = work_of(int(size), contexts[0]) if work_of and phase == "decode" else None
        measured = times.device_us or times.wall_us
        found[shape] = floors.floor(work, ceilings, measured.median)
    return found


def lifetime(records: StudyRecords, mode: str) -> Lifetime | None:
    """Ready times, completions and break-even of one mode at every rate; None without its start and load records."""
    startup, load = records.warmup[mode].data, records.load[mode].data
    if startup is None or load is None:
        return None
    ready = services.ready_s(startup)
    rates = services.verdict_rates(records.params)
    grid = sorted({*lifetimes.grid_s(records.params.lifetimes_s), *ready.values()})  # a curve leaves 0 where its mode is ready
    curves: dict[str, dict[str, list[list[float]]]] = {}
    for rate in rates:
        found = {cache: services.corners(startup, load, rate, cache) for cache in ready}
        drawn = {cache: [[at, lifetimes.completions(at, c.point)] for at in grid] for cache, c in found.items() if c}
        if drawn:
            curves[rate] = drawn
    rivals = next_best.next_best(records, mode, rates)
    middle = middle_way.curves(records, mode, rates, grid)
    evens = _break_evens(records, mode, rates)
    return Lifetime(ready_s=ready, break_even=evens, completions=curves, next_best=rivals, middle_way=middle)


def _break_evens(records: StudyRecords, mode: str, rates: list[str]) -> dict[str, dict[str, BreakEven]]:
    """Against the baseline from the same cache state, or from cold where it has none: eager has nothing to cache.

    A mode that gets no credit breaks even nowhere.
    """
    own = records.warmup[mode].data, records.load[mode].data
    base = records.warmup[records.baseline].data, records.load[records.baseline].data
    if mode == records.baseline or eligibility.objection(records, mode) or not (own[0] and own[1] and base[0] and base[1]):
        return {}
    bounds = own[1].max_goodput_is_lower_bound, base[1].max_goodput_is_lower_bound
    found: dict[str, dict[str, BreakEven]] = {}
    for rate in rates:
        for cache in lifetimes.CACHES:
            mine = services.corners(own[0], own[1], rate, cache)
            theirs = services.corners(base[0], base[1], rate, cache) or services.corners(base[0], base[1], rate, "cold")
            if mine and theirs:
                found.setdefault(rate, {})[cache] = services.break_even_at(mine, theirs, rate, bounds)
    return found
