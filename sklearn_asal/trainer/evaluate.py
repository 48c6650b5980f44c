"""How good a policy is on fresh simulated tasks."""

import torch
from tqdm import tqdm

from .objectives import objective
from .references import reachable
from .simulator import draw_tasks, simulate
from .threads import one_torch_thread

CHUNK = 250


@torch.inference_mode()
@one_torch_thread()
def evaluate(network, preset, n_tasks=2000, seed=1, n_test=200, n_rmse=None, progress=False):
    """Roll a policy out on tasks it has never seen.

    Parameters
    ----------
    network : TransformerNetwork, ReaderNetwork or Querying
    preset : Preset
        What the tasks are drawn from.
    n_tasks : int, default=2000
        Every task has a kernel of its own.
    seed : int, default=1
    n_test : int, default=200
        Test points a task for the RMSE.
    n_rmse : int, optional
        Number of tasks for the RMSE, which needs rollouts of its own; by default ``n_tasks``.
    progress : bool, default=False
        Show a progress bar, if standard error is a terminal.

    Returns
    -------
    dict
        ``objective``: as in training, T_sim drawn as in training; ``objective_sem``: its standard
        error; ``unsafe_share``: of the queries, with noise-free q < 0 (None without safety);
        ``border_share``: of the queries, within 0.02 of the border; ``gp_test_rmse``: after
        ``max_budget`` queries, of the posterior mean under the true hyperparameters against the
        noise-free function on uniform test points (for a safe policy on those with q >= 0).
    """
    generator = torch.Generator(network_device(network)).manual_seed(seed)
    draws = dict(generator=generator, device=generator.device, dtype=torch.float32)
    chunk = getattr(network, "chunk", CHUNK)
    scores, unsafe, border, errors = [], [], [], []
    n_rmse = n_tasks if n_rmse is None else n_rmse
    bar = tqdm(total=n_tasks + n_rmse, unit="campaign", disable=None if progress else True)
    for start in range(0, n_tasks, chunk):
        n = min(chunk, n_tasks - start)
        tasks = draw_tasks(preset, n, 1, 1, generator)
        rollout = simulate(network, tasks)
        options = preset.gamma, preset.safety_weight
        scores.append(objective(preset.objective, rollout, tasks, *options))
        queried = rollout.X[rollout.queried]
        border.append(((queried - 0.5).abs().amax(-1) > 0.48).double())
        if tasks.safe:
            unsafe.append((tasks.q(rollout.X) < 0)[rollout.queried].double())
        bar.update(n)
    for start in range(0, n_rmse, chunk):
        n = min(chunk, n_rmse - start)
        tasks = draw_tasks(preset, n, 1, 1, generator, n_queries=preset.max_budget)
        x = torch.rand((n, n_test, preset.n_features), **draws)
        errors.append(_test_rmse(simulate(network, tasks), tasks, reachable(x, preset.lags)))
        bar.update(n)
    bar.close()
    scores = torch.cat(scores)
    return {
        "objective": scores.mean().item(),
        "objective_sem": (scores.std() / len(scores) ** 0.5).item() if len(scores) > 1 else None,
        "unsafe_share": torch.cat(unsafe).mean().item() if unsafe else None,
        "border_share": torch.cat(border).mean().item(),
        "gp_test_rmse": torch.cat(errors).nanmean().item() if errors else None,
    }


def network_device(network):
    """The device of a network.

    Parameters
    ----------
    network : torch.nn.Module or Querying

    Returns
    -------
    torch.device
        Of a module's parameters; of anything else the CPU.
    """
    is_module = isinstance(network, torch.nn.Module)
    return next(network.parameters()).device if is_module else torch.device("cpu")


def _test_rmse(rollout, tasks, x):
    X = rollout.X.double()
    K = tasks.kernel.gram(X) + torch.diag_embed(tasks.kernel.noise[:, None].expand(X.shape[:2]))
    weights = torch.cholesky_solve(rollout.Y.double()[..., None], torch.linalg.cholesky(K))
    error = (tasks.kernel.gram(x.double(), X) @ weights)[..., 0] - tasks.f(x)
    kept = tasks.q(x) >= 0 if tasks.safe else torch.ones_like(error, dtype=torch.bool)
    # A task without a safe test point gives nan and is left out of the mean.
    return ((error.square() * kept).sum(1) / kept.sum(1)).sqrt()
