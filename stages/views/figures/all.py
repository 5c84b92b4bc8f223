"""Every figure of a study, in the order of the page."""

from __future__ import annotations

from stages.views.document import Study
from stages.views.drawing import Drawn
from stages.views.figures.churn import churn
from stages.views.figures.coverage import coverage
from stages.views.figures.fleet import fleet
from stages.views.figures.goodput import goodput
from stages.views.figures.ladder import ladder
from stages.views.figures.latency import latency
from stages.views.figures.lifetime import lifetime
from stages.views.figures.memory import memory
from stages.views.figures.pareto import pareto
from stages.views.figures.waterfall import waterfall


def draw_all(study: Study) -> dict[str, Drawn]:
    """Figures by name; those with nothing to draw are absent."""
    drawn = [figure(study) for figure in (lifetime, pareto, coverage, churn, waterfall, ladder, fleet, latency, goodput, memory)]
    return {found.name: found for found in drawn if found}
