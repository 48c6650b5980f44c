"""Networks by the kind in their architecture."""

from .aline import ALINENetwork
from .architecture import complete
from .inference import InferenceNetwork
from .pfn import PFNNetwork
from .reader import ReaderNetwork
from .transformer import TransformerNetwork

_KINDS = {
    "reader": ReaderNetwork,
    "transformer": TransformerNetwork,
    "inference": InferenceNetwork,
    "pfn": PFNNetwork,
    "aline": ALINENetwork,
}


def build(architecture, **options):
    """A freshly initialised network, in single precision.

    Parameters
    ----------
    architecture : dict
        Its arguments and its ``"kind"``.
    **options
        Of its initialisation, such as ``centre_gain``.

    Returns
    -------
    ReaderNetwork, TransformerNetwork, InferenceNetwork, PFNNetwork or ALINENetwork

    Raises
    ------
    TypeError, ValueError
        An unknown argument, or a value that makes no network.
    """
    full = complete(architecture)
    kind = full.pop("kind")
    if kind in ("inference", "pfn"):
        full.pop("max_budget")
    return _KINDS[kind](**full, **options)


def restore(architecture, weights):
    """A network for answers only, with given weights.

    Parameters
    ----------
    architecture : dict
    weights : dict of str to Tensor
        Its ``state_dict``, in whose precision the network computes.

    Returns
    -------
    ReaderNetwork, TransformerNetwork, InferenceNetwork, PFNNetwork or ALINENetwork
        In evaluation mode and without gradients.
    """
    network = build(architecture)
    network.load_state_dict(weights, assign=True)
    return network.requires_grad_(False).eval()
