"""How much of an experiment is run: the paper's settings, or fewer steps of our own presets."""

import dataclasses

from ..trainer.presets import PRESETS

# The paper's recipe (labels tableS-batch_sizes and appendix-experiment_details-training_numerical).
_PAPER = {
    "kind": "transformer",
    "hidden": 512,
    "pooling": "sum",
    "output": "tanh",
    "standardize": False,
    "centre_gain": 1.0,
    "n_kernels": 10,
    "n_functions": 5,
    "direct_steps": 0,
    "clip_query": 0.0,
    "average": 0.0,
    "schedule": "step",
    "lr": 1e-4,
    "steps": 10_000,
}
_PAPER_TASKS = "500 without a limit, 50 with one, and 100 for DAD"
# Of --quick.
_QUICK = {
    "n_init": 2,
    "max_budget": 3,
    "n_fourier": 10,
    "embedding": 16,
    "hidden": 16,
    "heads": 2,
    "layers": 1,
}


def paper_recipe(name, **changes):
    """The preset of a policy as the paper trains it.

    Parameters
    ----------
    name : str
        A key of ``PRESETS``.
    **changes
        Fields that are set after that.

    Returns
    -------
    Preset
    """
    preset = PRESETS[name]
    if preset.needs_contrast:
        # The 200 functions of a kernel are the contrastive ones; one more is measured.
        own = {"n_functions": 1, "n_noises": 10, "steps": 20_000}
    elif preset.safe:
        own = {"objective": "S_H", "n_grid": 0, "n_noises": 1}
    else:
        own = {"objective": "I", "n_noises": 10}
    return preset.replace(**{**_PAPER, **own, **changes})


@dataclasses.dataclass(frozen=True)
class Scale:
    """How much is run.

    Parameters
    ----------
    name : {"paper", "small", "quick"}
    steps : int or None
        Of each training; None for the recipe's own number.
    seeds : int
        Trainings of each kind, with seeds 0 to ``seeds - 1``.
    campaigns : int
        Seeds of each benchmark task, for each policy.
    tasks : int
        Simulated tasks a policy is evaluated on after its training.
    """

    name: str
    steps: int | None
    seeds: int
    campaigns: int
    tasks: int

    def preset(self, name, **changes):
        """What is trained at this scale.

        Parameters
        ----------
        name : str
            A key of ``PRESETS``.
        **changes
            Fields that the experiment sets.

        Returns
        -------
        Preset
            At scale "paper" by the paper's recipe, else by our own with 10 tasks a step.
        """
        if self.name == "paper":
            preset = paper_recipe(name, **changes)
            return preset.replace(steps=self.steps or preset.steps)
        preset, quick = PRESETS[name], self.name == "quick"
        preset = preset.replace(n_kernels=2 if quick else 10, n_functions=1, n_noises=1)
        if preset.needs_contrast:
            preset = preset.replace(n_contrastive=5 if quick else 50)
        if quick:
            preset = preset.replace(**_QUICK, n_grid=min(preset.n_grid, 5))
        preset = preset.replace(**changes)
        steps = self.steps or preset.steps
        # Half of a run at most: what comes after these steps is the method itself.
        return preset.replace(steps=steps, direct_steps=min(preset.direct_steps, steps // 2))

    def cuts(self, experiment=None):
        """What of the paper's settings is cut down or different, in words.

        Parameters
        ----------
        experiment : str, optional
            What is said of DAD is said of "dad" alone; by default all is said.

        Returns
        -------
        list of str
        """
        words = []
        if self.name != "paper":
            words.append(
                "Policies are the reader network of this package, trained by its own recipe, and "
                "not the paper's transformer by the paper's: in so few steps that one learns "
                "nothing. The reader draws a Sobol sequence before any training, and so spreads "
                "its queries whatever it is trained by; rows named untrained show how much that is."
            )
            batch = self.preset("2d").batch
            words.append(f"{batch} tasks a step; the paper has {_PAPER_TASKS}.")
            n = self.preset("dad-1d").n_contrastive
            if experiment in (None, "dad"):
                words.append(f"DAD has {n} contrastive functions in place of 200.")
        if self.steps is not None:
            words.append(f"{self.steps} steps a training; the paper has 10,000, for DAD 20,000.")
        words.append(f"Seeds of each training: {self.seeds}; the paper shows the best of a few.")
        if self.campaigns != 5:
            words.append(f"Seeds of each benchmark task: {self.campaigns}; in the paper 5.")
        if self.name == "quick":
            words.append(
                "Two steps and queries of tiny networks, to see that all works: no result."
            )
        return words

    def queries(self, n_queries):
        """Length of a campaign at this scale.

        Parameters
        ----------
        n_queries : int
            In the paper.

        Returns
        -------
        int
        """
        return min(n_queries, 2) if self.name == "quick" else n_queries


#: By name; "quick" is ``--quick``.
SCALES = {
    scale.name: scale
    for scale in (
        Scale("small", 100, 1, 5, 60),
        Scale("paper", None, 3, 5, 2000),
        Scale("quick", 2, 1, 1, 2),
    )
}
