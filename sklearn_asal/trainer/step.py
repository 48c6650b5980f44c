"""One gradient of the objective: eager, sharded among threads or ranks, or a CUDA graph."""

import math
from concurrent.futures import ThreadPoolExecutor

import torch

from .distributed import mean, n_ranks
from .objectives import objective
from .simulator import draw_batches, simulate, spread_lengths

# Drawing tasks costs some hundred small kernels, however many are drawn, so a GPU draws ahead.
DRAWN_TOGETHER = 2000


class TaskStream:
    """An endless stream of steps, each a list of equal shards of its batch.

    Parameters
    ----------
    preset : Preset
        Its kernels are divided among ranks, and those of a rank among its shards.
    generator : torch.Generator
        Its device is where the tasks live.
    shards : int, default=1
        At most; fewer where they do not divide the kernels.

    Raises
    ------
    ValueError
        The ranks do not divide the kernels.
    """

    def __init__(self, preset, generator, shards=1):
        self.preset = preset
        self.generator = generator
        if preset.n_kernels % n_ranks():
            raise ValueError(
                f"n_kernels={preset.n_kernels} has to be a multiple of the {n_ranks()} processes "
                "that share a batch."
            )
        n_kernels = preset.n_kernels // n_ranks()
        self.shards = max(n for n in range(1, shards + 1) if n_kernels % n == 0)
        self.counts = (n_kernels // self.shards, preset.n_functions, preset.n_noises)
        self.lengths = None
        self.ahead = 1
        if generator.device.type == "cuda":
            self.ahead = max(1, DRAWN_TOGETHER // math.prod(self.counts))
            if preset.random_budget:
                # A captured graph has fixed shapes.
                self.lengths = spread_lengths(preset.max_budget, math.prod(self.counts))
        self._before = generator.get_state()
        self._steps, self._used = [], 0

    def __next__(self):
        if self._used == len(self._steps):
            self._before = self.generator.get_state()
            n = self.shards
            drawn = draw_batches(
                self.preset, self.ahead * n, self.counts, self.generator, self.lengths
            )
            self._steps = [drawn[i : i + n] for i in range(0, len(drawn), n)]
            self._used = 0
        self._used += 1
        return self._steps[self._used - 1]

    def state(self):
        """What :meth:`restore` needs to go on with the step after the last one.

        Returns
        -------
        dict
            ``"generator"``, a state of it, and ``"used"``, the steps taken since.
        """
        if self._used == len(self._steps):
            return {"generator": self.generator.get_state(), "used": 0}
        return {"generator": self._before, "used": self._used}

    def restore(self, state):
        """Go on where a state was taken.

        Parameters
        ----------
        state : dict
            From :meth:`state`.
        """
        self.generator.set_state(state["generator"].cpu())
        self._steps, self._used = [], 0
        for _ in range(state["used"]):
            next(self)


@torch.enable_grad()  # the host may have turned gradients off
def loss_gradient(network, tasks, preset, through_time=True):
    """Gradient of the loss, minus the mean objective.

    Parameters
    ----------
    network : TransformerNetwork or ReaderNetwork
    tasks : Tasks
    preset : Preset
    through_time : bool, default=True
        See :func:`~sklearn_asal.trainer.simulator.simulate`.

    Returns
    -------
    Tensor of shape (2 + n_parameters,)
        Objective, share of queries with noise-free ``q < 0`` (nan without safety), and the
        gradient of one parameter after the other. Nothing waits for the device.
    """
    clip = preset.clip_query if through_time else 0
    rollout = simulate(network, tasks, clip or None, through_time)
    options = preset.gamma, preset.safety_weight
    score = objective(preset.objective, rollout, tasks, *options).mean()
    gradient = torch.autograd.grad(-score, list(network.parameters()))
    unsafe = torch.full_like(score, torch.nan)
    if tasks.safe:
        with torch.no_grad():
            queried = rollout.queried
            unsafe = ((tasks.q(rollout.X) < 0) & queried).sum() / queried.sum()
    facts = torch.stack([score.detach().float(), unsafe.float()])
    return torch.cat([facts, *(part.flatten() for part in gradient)])


class Step:
    """The clipped gradient of one step after the other, left in the parameters.

    Shards run side by side, each on a thread of its own: better than threads inside each small
    operation. With several ranks the gradient is the mean of theirs.

    Parameters
    ----------
    network : TransformerNetwork or ReaderNetwork
    preset : Preset
    n_threads : int, default=1
        Among which shards are divided.
    through_time : bool, default=True
        See :func:`loss_gradient`.
    """

    def __init__(self, network, preset, n_threads=1, through_time=True):
        self.network = network
        self.preset = preset
        self.through_time = through_time
        self.n_threads = n_threads

    def loss_gradients(self, shards):
        """Gradient of each shard.

        Parameters
        ----------
        shards : list of Tasks

        Returns
        -------
        list of Tensor
            See :func:`loss_gradient`.
        """

        def work(tasks):
            return loss_gradient(self.network, tasks, self.preset, self.through_time)

        if self.n_threads == 1:
            return list(map(work, shards))
        # Threads cost little beside a step, and none is left over for a fork or the end.
        one_each = dict(initializer=torch.set_num_threads, initargs=(1,))
        with ThreadPoolExecutor(self.n_threads, "shard", **one_each) as threads:
            return list(threads.map(work, shards))

    def __call__(self, shards):
        """Compute the gradient.

        Parameters
        ----------
        shards : list of Tasks
            Of equal size.

        Returns
        -------
        Tensor of shape (3,)
            Objective, unsafe share, norm of the gradient before clipping. Where that is not
            finite, the gradient is zero.
        """
        parts = self.loss_gradients(shards)
        flat = parts[0] if len(parts) == 1 else torch.stack(parts).mean(0)
        flat = mean(flat)
        facts, gradient = flat[:2], flat[2:]
        norm = gradient.norm()
        scale = (self.preset.clip_norm / norm).clamp(max=1.0)
        # A branch would wait for a GPU.
        gradient = torch.where(torch.isfinite(norm), gradient * scale, 0.0)
        start = 0
        for parameter in self.network.parameters():
            end = start + parameter.numel()
            parameter.grad = gradient[start:end].view_as(parameter)
            start = end
        return torch.cat([facts, norm[None]])


class CapturedStep(Step):
    """The same, with rollout, objective and backward pass as one CUDA graph.

    A step is tens of thousands of kernels of microseconds each, so launching them one by one
    is what takes the time.

    Parameters
    ----------
    network : TransformerNetwork or ReaderNetwork
    preset : Preset
    tasks : Tasks
        An example; others have to have the same shapes and lengths.
    through_time : bool, default=True
        See :func:`loss_gradient`.
    """

    def __init__(self, network, preset, tasks, through_time=True):
        super().__init__(network, preset, through_time=through_time)
        self.tasks = tasks
        self.buffers = tasks.tensors()
        self.graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # lets cuBLAS and the allocator settle
                loss_gradient(network, tasks, preset, through_time)
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
            self.result = loss_gradient(network, tasks, preset, through_time)

    def loss_gradients(self, shards):
        """Gradient of the only shard.

        Parameters
        ----------
        shards : list of one Tasks

        Returns
        -------
        list of one Tensor
            See :func:`loss_gradient`.
        """
        (tasks,) = shards
        for buffer, value in zip(self.buffers, tasks.tensors(), strict=True):
            buffer.copy_(value)
        self.graph.replay()
        return [self.result.clone()]


def make_step(network, preset, stream, through_time=True):
    """The step that suits the device of a stream of tasks.

    Parameters
    ----------
    network : TransformerNetwork or ReaderNetwork
    preset : Preset
    stream : TaskStream
    through_time : bool, default=True
        See :func:`loss_gradient`.

    Returns
    -------
    Step
    """
    if stream.generator.device.type != "cuda":
        return Step(network, preset, stream.shards, through_time)
    generator = torch.Generator(stream.generator.device).manual_seed(0)
    example = draw_batches(preset, 1, stream.counts, generator, stream.lengths)[0]
    return CapturedStep(network, preset, example, through_time)
