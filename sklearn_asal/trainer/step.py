"""One gradient of the objective: computed eagerly, or replayed as a captured CUDA graph."""

import torch

from .objectives import objective
from .simulator import draw_batches, simulate, spread_lengths

# Drawing tasks costs some hundred small kernels, however many are drawn, so a GPU draws ahead.
DRAWN_TOGETHER = 2000


class Supply:
    """An endless stream of batches of tasks.

    Parameters
    ----------
    preset : Preset
    generator : torch.Generator
        Its device is where the tasks live.
    """

    def __init__(self, preset, generator):
        self.preset = preset
        self.generator = generator
        self.lengths = None
        self.ahead = 1
        if generator.device.type == "cuda":
            self.ahead = max(1, DRAWN_TOGETHER // preset.batch)
            if preset.random_budget:
                # A captured graph has fixed shapes.
                self.lengths = spread_lengths(preset.max_budget, preset.batch)
        self._before = generator.get_state()
        self._batches, self._used = [], 0

    def __next__(self):
        if self._used == len(self._batches):
            p = self.preset
            counts = (p.n_kernels, p.n_functions, p.n_noises)
            self._before = self.generator.get_state()
            self._batches = draw_batches(p, self.ahead, counts, self.generator, self.lengths)
            self._used = 0
        self._used += 1
        return self._batches[self._used - 1]

    def state(self):
        """What :meth:`restore` needs to go on with the batch after the last one."""
        if self._used == len(self._batches):
            return {"generator": self.generator.get_state(), "used": 0}
        return {"generator": self._before, "used": self._used}

    def restore(self, state):
        """Go on where :meth:`state` was taken."""
        self.generator.set_state(state["generator"].cpu())
        self._batches, self._used = [], 0
        for _ in range(state["used"]):
            next(self)


def gradient(network, tasks, preset):
    """Leave the clipped gradient of minus the mean objective in the parameters.

    Parameters
    ----------
    network : PolicyNetwork
    tasks : Tasks
    preset : Preset

    Returns
    -------
    Tensor of shape (3,)
        Objective; share of queries with noise-free ``q < 0`` (nan without safety); norm of the
        gradient before clipping. Nothing waits for the device.
    """
    rollout = simulate(network, tasks, clip=preset.clip_query or None)
    score = objective(preset.objective, rollout, tasks, preset.gamma).mean()
    (-score).backward()
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), preset.clip_norm)
    unsafe = torch.full_like(score, torch.nan)
    if tasks.safe:
        with torch.no_grad():
            queried = rollout.queried
            unsafe = ((tasks.q(rollout.X) < 0) & queried).sum() / queried.sum()
    return torch.stack([value.detach().double() for value in (score, unsafe, norm)])


class Step:
    """The gradient of one step after the other.

    Parameters
    ----------
    network : PolicyNetwork
    preset : Preset
    """

    def __init__(self, network, preset):
        self.network = network
        self.preset = preset

    def __call__(self, tasks):
        """As :func:`gradient`."""
        self.network.zero_grad(set_to_none=True)
        return gradient(self.network, tasks, self.preset)


class CapturedStep(Step):
    """The same, with rollout, objective and backward pass as one CUDA graph.

    A step is tens of thousands of kernels of microseconds each, so launching them one by one
    is what takes the time. Not-finite gradients come back as zeros.

    Parameters
    ----------
    network : PolicyNetwork
    preset : Preset
    tasks : Tasks
        An example; others have to have the same shapes and lengths.
    """

    def __init__(self, network, preset, tasks):
        super().__init__(network, preset)
        self.tasks = tasks
        self.buffers = tasks.tensors()
        self.graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # lets cuBLAS and the allocator settle
                super().__call__(tasks)
        torch.cuda.current_stream().wait_stream(stream)
        network.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
            self.result = self._capture()

    def _capture(self):
        result = gradient(self.network, self.tasks, self.preset)
        finite = torch.isfinite(result[2])
        for parameter in self.network.parameters():
            parameter.grad.copy_(torch.where(finite, parameter.grad, 0.0))
        return result

    def __call__(self, tasks):
        """As :func:`gradient`."""
        for buffer, value in zip(self.buffers, tasks.tensors(), strict=True):
            buffer.copy_(value)
        self.graph.replay()
        return self.result.clone()


def make_step(network, preset, supply):
    """The step that suits the supply's device."""
    if supply.generator.device.type != "cuda":
        return Step(network, preset)
    p = preset
    counts = (p.n_kernels, p.n_functions, p.n_noises)
    generator = torch.Generator(supply.generator.device).manual_seed(0)
    example = draw_batches(p, 1, counts, generator, supply.lengths)[0]
    return CapturedStep(network, preset, example)
