"""Training of ALINE (Huang et al., 2025): learn to predict, then also to choose what is measured.

First the network learns to predict outputs at random inputs from random measurements. Then it runs
campaigns: at each query it draws one of the candidates, and is rewarded with what the measurement
adds to the log predictive density of the targets. The policy's gradient is that of REINFORCE
(Williams, 1992).
"""

import csv
import dataclasses
import math
import time
from pathlib import Path

import torch
from tqdm import tqdm

from .. import __version__
from ..policies.aline import ALINENetwork, log_density
from ..policies.checkpoint import save_policy
from .fourier import FourierFunctions
from .loop import VALIDATION_SEED, TrainingError, _Interrupt, read_state, write_state
from .priors import TOTAL_VARIANCE, ShiftedExponential, Uniform, draw_kernels
from .references import measure
from .threads import one_torch_thread

# Of functions and of their noise: the paper's.
LENGTHSCALE, VARIANCE = ShiftedExponential(0.2, 10.0), Uniform(0.9616, 1.0)
_WARM_UP, _DECAY, _CLIP, _LAST_RATE = 100, 1e-4, 1.0, 0.02
# Steps between two validations, before there is a policy and then.
_EVERY = 500, 50
# In campaigns, predictions are learned at one of so many queries: they take half of the time.
_ONE_IN = 4
COLUMNS = "step", "seconds", "loss", "validation", "policy", "random"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How ALINE is trained.

    Parameters
    ----------
    name : str
    n_features : int
    max_budget : int
        Queries of each campaign, after one random measurement.
    steps : int
        Updates of the whole run; the schedule depends on it.
    first_steps : int
        Those in which it learns to predict alone.
    n_tasks : int
        Functions in each of these.
    n_functions, n_rollouts : int
        Functions in each of the others, and campaigns on each.
    n_targets, n_candidates : int
        Random inputs of each function.
    discount : float
        Of rewards to come, at each query.
    lr : float
        Peak learning rate.
    n_validation : int
        Functions that are held out.
    seed : int
    embedding, hidden, heads, layers, components : int
        See :class:`~sklearn_asal.policies.aline.ALINENetwork`.
    """

    name: str
    n_features: int
    max_budget: int
    steps: int
    first_steps: int
    n_tasks: int = 96
    n_functions: int = 8
    n_rollouts: int = 4
    n_targets: int = 32
    n_candidates: int = 64
    discount: float = 0.5
    lr: float = 2e-3
    n_validation: int = 128
    seed: int = 0
    embedding: int = 32
    hidden: int = 64
    heads: int = 4
    layers: int = 3
    components: int = 4

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value, least = getattr(self, field.name), 2 if field.name == "n_rollouts" else 1
            if field.type is int and field.name not in ("seed", "first_steps") and value < least:
                raise ValueError(f"{field.name} must be at least {least}, got {value}")
        if not 0 <= self.first_steps < self.steps:
            raise ValueError(
                f"first_steps must be from 0 to {self.steps - 1}, less than steps, got "
                f"{self.first_steps}"
            )
        if self.n_candidates < self.max_budget:
            raise ValueError(
                f"n_candidates must be at least max_budget={self.max_budget}, for none is measured "
                f"twice; got {self.n_candidates}"
            )
        if not 0 <= self.discount <= 1:
            raise ValueError(f"discount must be in [0, 1], got {self.discount}")
        if not 0 < self.lr < math.inf:
            raise ValueError(f"lr must be positive, got {self.lr}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed must be from 0 to 2**63 - 1, got {self.seed}")
        self.network()  # which knows what makes one

    def replace(self, **changes):
        """A copy with some fields changed.

        Parameters
        ----------
        **changes
            Fields and their values. Where ``steps`` are among them and ``first_steps`` are not,
            these are as large a part of them.

        Returns
        -------
        Recipe

        Raises
        ------
        ValueError
            A value that is none for its field; the message names the field.
        """
        if "steps" in changes and "first_steps" not in changes:
            changes["first_steps"] = changes["steps"] * self.first_steps // self.steps
        return dataclasses.replace(self, **changes)

    def network(self):
        """A freshly initialised network.

        Returns
        -------
        ALINENetwork
        """
        shared = "n_features embedding hidden heads layers components max_budget"
        return ALINENetwork(**{name: getattr(self, name) for name in shared.split()})


#: By name.
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("aline-1d", 1, max_budget=10, steps=3700, first_steps=2500, discount=0.9),
        # Less noise, and in a short training more is learned.
        Recipe("aline-2d", 2, max_budget=20, steps=4700, first_steps=3000, discount=0.5),
    )
}


@dataclasses.dataclass
class Campaigns:
    """Campaigns about to begin, with all that may be measured in them.

    Attributes
    ----------
    X, y : Tensor of shape (B, n, D) and (B, n)
        First measurements.
    candidates, outcomes : Tensor of shape (B, k, D) and (B, k)
        Inputs that may be measured, and what would come out.
    targets, truth : Tensor of shape (B, m, D) and (B, m)
        Inputs whose outputs matter, and these outputs, noise included.
    """

    X: torch.Tensor
    y: torch.Tensor
    candidates: torch.Tensor
    outcomes: torch.Tensor
    targets: torch.Tensor
    truth: torch.Tensor

    def repeat(self, times):
        """Each campaign several times in a row.

        Parameters
        ----------
        times : int

        Returns
        -------
        Campaigns
        """
        return Campaigns(*(part.repeat_interleave(times, 0) for part in vars(self).values()))


def draw_campaigns(recipe, n, n_init, generator, n_candidates=0):
    """Draw functions of Gaussian processes, and noisy outputs at random inputs.

    Parameters
    ----------
    recipe : Recipe
    n, n_init : int
        Campaigns, and first measurements of each.
    generator : torch.Generator
    n_candidates : int, default=0

    Returns
    -------
    Campaigns
    """
    options = {"generator": generator, "device": generator.device}
    kernel = draw_kernels(n, recipe.n_features, LENGTHSCALE, VARIANCE, generator)
    sizes = n_init, n_candidates, recipe.n_targets
    x = torch.rand((n, sum(sizes), recipe.n_features), **options, dtype=torch.float32)
    y = measure(FourierFunctions(kernel, generator), x, kernel, options)
    parts = zip(x.split(sizes, 1), y.split(sizes, 1), strict=True)
    return Campaigns(*(part for pair in parts for part in pair))


def run_campaigns(network, campaigns, n_queries, choose, first=0, one_in=1):
    """Let a network carry campaigns out.

    Parameters
    ----------
    network : ALINENetwork
    campaigns : Campaigns
        No candidate is measured twice.
    n_queries : int
    choose : callable
        From log probabilities of the candidates, ``(B, k)``, an index for each campaign, ``(B,)``.
    first, one_in : int, default=0, 1
        Predictions have a gradient before query ``first``, and every so many queries after it.

    Returns
    -------
    density : Tensor of shape (B, n_queries + 1)
        Mean log predictive density of the targets before each query and after the last.
    log_probability : Tensor of shape (B, n_queries)
        Of what was chosen.
    """
    c = campaigns
    X, y, free = c.X, c.y, torch.ones_like(c.outcomes, dtype=torch.bool)
    density, log_probability = [], []
    for t in range(n_queries + 1):
        candidates = c.candidates if t < n_queries else None
        mixture, scores = network(X, y, c.targets, candidates, learn=t % one_in == first)
        density.append(log_density(mixture, c.truth).mean(1))
        if candidates is None:
            break
        log_p = torch.log_softmax(scores.masked_fill(~free, -math.inf), 1)
        chosen = choose(log_p.detach())[:, None]
        log_probability.append(log_p.gather(1, chosen)[:, 0])
        free = free.scatter(1, chosen, False)
        at = chosen[..., None].expand(-1, -1, X.shape[2])
        X = torch.cat([X, c.candidates.gather(1, at)], 1)
        y = torch.cat([y, c.outcomes.gather(1, chosen)], 1)
    return torch.stack(density, 1), torch.stack(log_probability, 1)


def advantages(density, discount, n_rollouts):
    """Discounted rewards to come of each query, less what the other campaigns got there.

    A reward is what a query adds to the log predictive density of the targets. Campaigns on the
    same function are each other's baseline, which leaves the gradient's mean as it is.

    Parameters
    ----------
    density : Tensor of shape (B, T + 1)
        See :func:`run_campaigns`; ``n_rollouts`` rows in a row are of one function.
    discount : float
    n_rollouts : int
        At least 2.

    Returns
    -------
    Tensor of shape (B, T)
    """
    rewards = density.diff(dim=1)
    returns = [rewards[:, -1]]
    for reward in reversed(rewards[:, :-1].unbind(1)):
        returns.append(reward + discount * returns[-1])
    returns = torch.stack(returns[::-1], 1)
    same = returns.unflatten(0, (-1, n_rollouts))
    others = (same.sum(1, keepdim=True) - same) / (n_rollouts - 1)
    return (same - others).flatten(0, 1)


def policy_loss(log_probability, advantage):
    """What has the gradient of REINFORCE, with the sign of a loss.

    Parameters
    ----------
    log_probability, advantage : Tensor of shape (B, T)

    Returns
    -------
    Tensor
        Sum over the queries, mean over the campaigns.
    """
    return -(log_probability * advantage.detach()).sum(1).mean()


def loss_of_predictions(network, recipe, generator):
    """Negative log density of outputs, given random measurements.

    Parameters
    ----------
    network : ALINENetwork
    recipe : Recipe
    generator : torch.Generator

    Returns
    -------
    Tensor
    """
    n = 1 + int(torch.randint(recipe.max_budget + 1, (), generator=generator))
    c = draw_campaigns(recipe, recipe.n_tasks, n, generator)
    return -log_density(network(c.X, c.y, c.targets)[0], c.truth).mean()


def loss_of_campaigns(network, recipe, generator):
    """Of campaigns: the negative log density of their targets, and the policy's loss.

    Parameters
    ----------
    network : ALINENetwork
    recipe : Recipe
    generator : torch.Generator

    Returns
    -------
    of_predictions, of_policy : Tensor
    """
    campaigns = draw_campaigns(recipe, recipe.n_functions, 1, generator, recipe.n_candidates)

    def draw(log_p):
        return torch.multinomial(log_p.exp(), 1, generator=generator)[:, 0]

    one_in = min(_ONE_IN, recipe.max_budget + 1)
    first = int(torch.randint(one_in, (), generator=generator))
    campaigns = campaigns.repeat(recipe.n_rollouts)
    density, log_probability = run_campaigns(
        network, campaigns, recipe.max_budget, draw, first, one_in
    )
    advantage = advantages(density.detach(), recipe.discount, recipe.n_rollouts)
    # In units of their spread, which falls by an order of magnitude in training.
    learned = density[:, first::one_in]
    return -learned.mean(), policy_loss(log_probability, advantage / (advantage.std() + 1e-6))


@torch.inference_mode()
def validate(network, recipe, n=None, seed=VALIDATION_SEED):
    """Campaigns on functions that are held out.

    Parameters
    ----------
    network : ALINENetwork
    recipe : Recipe
    n : int, optional
        Functions; by default ``recipe.n_validation``.
    seed : int

    Returns
    -------
    policy, random : Tensor of shape (max_budget + 1,)
        Mean log predictive density of the targets after so many queries: the most probable
        candidates, and random ones.
    """
    generator = torch.Generator().manual_seed(seed)
    n = recipe.n_validation if n is None else n
    campaigns = draw_campaigns(recipe, n, 1, generator, recipe.n_candidates)
    best, _ = run_campaigns(network, campaigns, recipe.max_budget, lambda p: p.argmax(1))

    def any_free(log_p):
        # Candidates are random, so the first that is free is as random as any.
        return log_p.isfinite().to(torch.int8).argmax(1)

    other, _ = run_campaigns(network, campaigns, recipe.max_budget, any_free)
    return best.mean(0), other.mean(0)


class ALINETrainer:
    """Train ALINE; everything it needs to go on lives in one folder.

    The folder holds ``policy.safetensors`` (the best network in validation since campaigns began),
    ``state.pt`` (what :meth:`run` needs to go on, bit for bit) and ``log.csv``.

    Parameters
    ----------
    recipe : Recipe
    out : path-like
        The folder of the run; made if missing.
    save_every : float, default=120
        Seconds between two checkpoints.
    progress : bool, default=True
        Whether to show a progress bar.
    max_seconds : float, optional
        Stop after this long, as Ctrl-C does; the run can be resumed.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended the last run before its last step.
    """

    def __init__(self, recipe, out, *, save_every=120.0, progress=True, max_seconds=None):
        self.recipe = recipe
        self.out = Path(out)
        self.save_every = save_every
        self.progress = progress
        self.max_seconds = math.inf if max_seconds is None else max_seconds
        self.interrupted = False

    @property
    def policy_path(self):
        """File of the best network so far."""
        return self.out / "policy.safetensors"

    def run(self, resume=False):
        """Train until the last step or Ctrl-C.

        Parameters
        ----------
        resume : bool, default=False
            Go on with the run in the folder.

        Returns
        -------
        float
            Best mean log density over validation campaigns; minus infinity before the first.

        Raises
        ------
        TrainingError
            The folder already holds a run (and ``resume`` is off), or none or another one (and it
            is on).
        """
        end = time.monotonic() + self.max_seconds
        with one_torch_thread(), _Interrupt() as interrupt:
            self._start(resume)
            clock, saved = time.monotonic() - self.seconds, time.monotonic()
            with tqdm(
                total=self.recipe.steps,
                initial=self.step,
                desc=self.recipe.name,
                disable=not self.progress,
            ) as bar:
                while self.step < self.recipe.steps:
                    stop = interrupt.asked or time.monotonic() > end
                    if stop or time.monotonic() - saved > self.save_every:
                        self._save()
                        saved = time.monotonic()
                    if stop:
                        self.interrupted = interrupt.asked
                        return self.best
                    self._advance()
                    bar.update()
                    self.seconds = time.monotonic() - clock
                    every = _EVERY[self.step > self.recipe.first_steps]
                    if self.step % every == 0 or self.step == self.recipe.steps:
                        self._validate()
            self._save()
        return self.best

    def _advance(self):
        recipe = self.recipe
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate()
        if self.step < recipe.first_steps:
            loss = total = loss_of_predictions(self.network, recipe, self.generator)
        else:
            loss, of_policy = loss_of_campaigns(self.network, recipe, self.generator)
            # Campaigns alone are too few functions to go on learning to predict.
            of_others = loss_of_predictions(self.network, recipe, self.generator)
            total = 0.5 * (loss + of_others) + of_policy
        self.optimizer.zero_grad()
        total.backward()
        # Each has weights of its own.
        for parameters in self.parts:
            torch.nn.utils.clip_grad_norm_(parameters, _CLIP)
        self.optimizer.step()
        self.losses.append(loss.item())
        self.step += 1

    def _rate(self):
        """Learning rate: a rise, and in campaigns half a cosine."""
        recipe = self.recipe
        rise = min(1.0, (self.step + 1) / _WARM_UP)
        done = max(0, self.step - recipe.first_steps) / max(1, recipe.steps - recipe.first_steps)
        fall = 0.5 * (1 + math.cos(math.pi * done))
        return recipe.lr * rise * (_LAST_RATE + (1 - _LAST_RATE) * fall)

    def _start(self, resume):
        recipe = self.recipe
        with torch.random.fork_rng():
            torch.manual_seed(recipe.seed)
            self.network = recipe.network()
        self.optimizer = torch.optim.AdamW(
            self.network.parameters(), recipe.lr, weight_decay=_DECAY
        )
        named = list(self.network.named_parameters())
        of_policy = [p for name, p in named if name.startswith(("candidate", "picking", "score"))]
        known = set(map(id, of_policy))
        self.parts = of_policy, [p for _, p in named if id(p) not in known]
        self.generator = torch.Generator().manual_seed(recipe.seed)
        self.step, self.seconds, self.best, self.losses, self.rows = 0, 0.0, -math.inf, [], []
        if not resume:
            if (self.out / "state.pt").exists():
                raise TrainingError(f"{self.out} already holds a run; pass --resume to go on.")
            self.out.mkdir(parents=True, exist_ok=True)
            self._save()
            return
        state = read_state(self.out)
        if state.get("recipe") != dataclasses.asdict(recipe):
            raise TrainingError(
                f"{self.out} holds a run with {state.get('recipe')}, not "
                f"{dataclasses.asdict(recipe)}; pass the same, or choose another folder."
            )
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"])
        for name in ("step", "seconds", "best", "losses", "rows"):
            setattr(self, name, state[name])

    def _validate(self):
        policy, random = validate(self.network, self.recipe)
        score = policy[1:].mean().item()
        loss = sum(self.losses) / len(self.losses)
        row = [self.step, round(self.seconds), loss, score, policy[-1].item(), random[-1].item()]
        self.rows.append(row)
        self.losses = []
        self._write_log()
        # Before campaigns there is no policy.
        if self.step > self.recipe.first_steps and score > self.best:
            self.best = score
            self._save_policy(row)

    def _write_log(self):
        with open(self.out / "log.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(
                [*row[:2], *(f"{value:.5f}" for value in row[2:])] for row in self.rows
            )

    def _save_policy(self, row):
        noise = [(TOTAL_VARIANCE - v) ** 0.5 for v in reversed(VARIANCE.range)]
        header = {
            "name": self.recipe.name,
            "n_init": 1,
            "noise_std": noise,
            "preset": {"objective": "log density", **dataclasses.asdict(self.recipe)}
            | {"lengthscale": {"kind": "shifted-exponential", **dataclasses.asdict(LENGTHSCALE)}}
            | {"variance": {"kind": "uniform", **dataclasses.asdict(VARIANCE)}},
            "steps_done": self.step,
            "seconds": round(self.seconds, 1),
            "validation": {
                "tasks": self.recipe.n_validation,
                "objective": row[3],
                "log_density": row[4],
                "log_density_random": row[5],
            },
            "trainer_version": __version__,
            "torch_version": torch.__version__,
        }
        save_policy(self.network, self.policy_path, header)

    def _save(self):
        state = {
            "recipe": dataclasses.asdict(self.recipe),
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }
        state |= {
            name: getattr(self, name) for name in ("step", "seconds", "best", "losses", "rows")
        }
        write_state(self.out, state)
