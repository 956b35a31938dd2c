"""Environments for Gymnasium on the engine of narrows, in virtual time: `import narrows.gym`, then

    env = gymnasium.make("narrows/RateControl-v0")
    env = gymnasium.make("narrows/ABR-v0", scenario=narrows.link(trace="cell.csv", delay="40ms"))

The same seed gives the same episode. `narrows.gym.baselines` has scripted policies to compare with; there are no agents here.
"""

import gymnasium

from .abr import ABR
from .rate_control import RateControl

__all__ = ["ABR", "RateControl"]

gymnasium.register(id="narrows/RateControl-v0", entry_point="narrows.gym.rate_control:RateControl")
gymnasium.register(id="narrows/ABR-v0", entry_point="narrows.gym.abr:ABR")
