"""All experiments, by name."""

from .dad import DAD
from .deployment_time import DEPLOYMENT_TIME
from .embedding import EMBEDDING
from .gamma import GAMMA
from .horizon import HORIZON
from .objectives import OBJECTIVES, SAFE_OBJECTIVES
from .threshold import THRESHOLD
from .training_time import TRAINING_TIME

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        EMBEDDING,
        HORIZON,
        OBJECTIVES,
        SAFE_OBJECTIVES,
        GAMMA,
        DAD,
        TRAINING_TIME,
        THRESHOLD,
        DEPLOYMENT_TIME,
    )
}
