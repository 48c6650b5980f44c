"""Several trainings that share one GPU."""

import threading


def train_together(trainers, resume=False):
    """Run several trainers at once, each on a thread and a CUDA stream of its own.

    One training is a chain of small kernels that leaves most of a large GPU idle; several
    together take little longer than the slowest alone.

    Parameters
    ----------
    trainers : list of Trainer
    resume : bool, default=False
        As in :meth:`Trainer.run`.

    Returns
    -------
    list of float
        Best validation objective of each.

    Raises
    ------
    TrainingError
        The first error, when all others have ended.
    """
    # One after the other: nothing else may use the GPU while a graph is captured.
    for trainer in trainers:
        trainer.prepare(resume)
    errors = []

    def advance(trainer):
        try:
            trainer.advance()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=advance, args=(trainer,)) for trainer in trainers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [trainer.best_objective for trainer in trainers]
