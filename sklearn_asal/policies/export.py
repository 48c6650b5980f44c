"""A policy as an ONNX file, for controllers without Python."""

import json
import math

import numpy as np

from .architecture import LEADING, complete, leading_points, scaling
from .checkpoint import load_runtime, locate, read_weights, resolve

_OPSET = 17  # the first with LayerNormalization


def export_onnx(policy, path, *, safe=None):
    """Write a policy as an ONNX graph that any ONNX runtime can evaluate.

    The graph maps float32 inputs ``budget`` of shape (B,), ``X`` (B, n, n_features),
    ``y`` (B, n), for a safe policy ``margin`` (B, n), and the bool ``mask`` (B, n) to ``x``,
    (B, n_features). B and n are free. Everything is at unit scale: ``X`` and ``x`` map the bounds
    to the unit cube, ``y`` is ``(y - y_loc) / y_scale``, ``margin`` is
    ``(z - safety_threshold) / z_scale`` with its sign turned where safe is below (of several limits
    the smallest). ``mask`` is True where an observation is real, False for padding. ``budget``
    counts the queries left, this one included, from 1 on; as in ``query``, a campaign that is
    longer than the policy's ``max_budget`` goes through its plan in slow motion. The metadata of
    the file hold the policy's header.

    Parameters
    ----------
    policy : str or path-like
        Name of a shipped policy or a policy file.
    path : path-like
        File to write.
    safe : bool, optional
        Which kind is meant; None accepts ``"safe-2d"``, ``"2d"`` or a path of either kind.

    Raises
    ------
    ImportError
        The package ``onnx`` is missing; the extra ``onnx`` installs it.
    PolicyNotFoundError, PolicyFileError
        See :func:`~sklearn_asal.policies.load_policy`.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "writing ONNX files needs the package onnx: pip install 'sklearn-asal[onnx]'."
        ) from error
    if safe is None:
        policy, safe = resolve(policy)
    load_runtime(policy, safe=safe)  # raises if it is of the other kind
    header, weights = read_weights(locate(policy, safe=safe))
    model = _Graph(onnx, weights).model(header)
    onnx.checker.check_model(model)
    onnx.save(model, path)


class _Graph:
    """Nodes and constants of the graph as they are added."""

    def __init__(self, onnx, weights):
        self.onnx = onnx
        self.weights = weights
        self.nodes, self.constants = [], {}

    def add(self, op, *inputs, **attributes):
        """One node; arrays among its inputs become constants. Returns the name of its output."""
        names = [part if isinstance(part, str) else self.constant(part) for part in inputs]
        output = attributes.pop("output", f"{op}_{len(self.nodes)}")
        self.nodes.append(self.onnx.helper.make_node(op, names, [output], **attributes))
        return output

    def constant(self, value):
        array = np.asarray(value)
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        key = (array.tobytes(), array.shape, array.dtype)
        if key not in self.constants:
            name = f"constant_{len(self.constants)}"
            self.constants[key] = self.onnx.numpy_helper.from_array(array, name)
        return self.constants[key].name

    def linear(self, x, name):
        product = self.add("MatMul", x, self.weights[f"{name}.weight"].T)
        return self.add("Add", product, self.weights[f"{name}.bias"])

    def mlp(self, x, name):
        return self.linear(self.add("Softplus", self.linear(x, f"{name}.0")), f"{name}.2")

    def norm(self, x, name):
        parts = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return self.add("LayerNormalization", x, *parts, axis=-1, epsilon=1e-5)

    def layer(self, x, name, heads, hidden_keys):
        """One layer of attention; ``hidden_keys`` is added to the scores."""
        projected = self.linear(x, f"{name}.qkv")
        parts = []
        for j in range(3):
            width = self.weights[f"{name}.out.weight"].shape[0]
            part = self.add("Slice", projected, [j * width], [(j + 1) * width], [2])
            part = self.add("Reshape", part, [0, 0, heads, width // heads])
            parts.append(self.add("Transpose", part, perm=[0, 2, 3, 1] if j == 1 else [0, 2, 1, 3]))
        q, k, v = parts
        q = self.add("Mul", q, np.float32(1 / math.sqrt(width // heads)))
        scores = self.add("Add", self.add("MatMul", q, k), hidden_keys)
        attended = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        attended = self.add("Transpose", attended, perm=[0, 2, 1, 3])
        attended = self.linear(self.add("Reshape", attended, [0, 0, width]), f"{name}.out")
        x = self.norm(self.add("Add", x, attended), f"{name}.norm1")
        hidden = self.add("Relu", self.linear(x, f"{name}.ff1"))
        return self.norm(self.add("Add", x, self.linear(hidden, f"{name}.ff2")), f"{name}.norm2")

    def encoder(self, x, value, name, setup, real, hidden_keys, root):
        """Observations of one kind, summed into one embedding."""
        x = self.mlp(
            self.add("Concat", x, self.add("Unsqueeze", value, [2]), axis=2), f"{name}.embed"
        )
        for i in range(setup["layers"]):
            x = self.layer(x, f"{name}.layers.{i}", setup["heads"], hidden_keys)
        x = self.add("Mul", self.linear(x, f"{name}.linear"), self.add("Unsqueeze", real, [2]))
        total = self.add("ReduceSum", x, [1], keepdims=0)
        return total if root is None else self.add("Div", total, root)

    def transformer(self, setup):
        """The paper's network, up to the bound on its decision."""
        real, hidden_keys, known, root = self.mask(setup)
        x = self.inputs(setup)
        shared = setup, real, hidden_keys, root
        parts = [self.encoder(x, "y", "history", *shared)]
        if setup["safe"]:
            parts.append(self.encoder(x, "margin", "safety_history", *shared))
        if setup["budget"]:
            parts.append(self.mlp(self.left(setup, known), "budget"))
        return self.mlp(self.add("Concat", *parts, axis=1), "decision")

    def mask(self, setup):
        """Weights of observations, what hides padding from attention, number, divisor of a sum."""
        real = self.add("Cast", "mask", to=self.onnx.TensorProto.FLOAT)
        hidden_keys = self.add("Mul", self.add("Sub", real, np.float32(1)), np.float32(1e30))
        hidden_keys = self.add("Unsqueeze", hidden_keys, [1, 2])
        known = self.add("ReduceSum", real, [1], keepdims=1)
        root = None
        if setup["pooling"] == "sqrt":
            root = self.add("Sqrt", self.add("Max", known, np.float32(1)))
        return real, hidden_keys, known, root

    def scaled(self, x, shift, factor):
        return self.add("Mul", self.add("Sub", x, np.float32(shift)), np.float32(factor))

    def inputs(self, setup):
        """X as the network wants it."""
        return self.scaled("X", *scaling(setup)[0])

    def left(self, setup, known):
        """The budget as the network wants it, ``(B, 1)``; what :func:`told_budget` does."""
        budget = self.add("Unsqueeze", "budget", [1])
        queried = self.add("Max", self.add("Sub", known, np.float32(self.n_init)), np.float32(0))
        share = self.add("Div", np.float32(self.longest), self.add("Add", budget, queried))
        told = self.add("Mul", budget, self.add("Min", share, np.float32(1)))
        return self.scaled(self.add("Max", told, np.float32(1)), *scaling(setup)[1])

    def silu(self, x):
        return self.add("Mul", x, self.add("Sigmoid", x))

    def forth(self, h, name):
        hidden = self.add("Relu", self.linear(self.norm(h, f"{name}.norm"), f"{name}.up"))
        return self.add("Add", h, self.linear(hidden, f"{name}.down"))

    def reader(self, setup):
        """The reading network, up to the bound on its decision."""
        width, heads = setup["embedding"], setup["heads"]
        real, hidden_keys, known, root = self.mask(setup)
        values = ("y", "margin")[: 1 + setup["safe"]]
        values = [self.add("Unsqueeze", value, [2]) for value in values]
        rows = self.add("Concat", self.inputs(setup), *values, axis=2)
        embedded = self.linear(self.silu(self.linear(rows, "embed.0")), "embed.2")
        tokens = self.linear(self.silu(embedded), "project")

        def part(i):
            return self.add("Slice", tokens, [i * width], [(i + 1) * width], [2])

        total = self.add("Mul", part(0), self.add("Unsqueeze", real, [2]))
        h = self.add("ReduceSum", total, [1], keepdims=0)
        if root is not None:
            h = self.add("Div", h, root)
        if setup["budget"]:
            hidden = self.silu(self.linear(self.left(setup, known), "budget.0"))
            h = self.add("Add", h, self.linear(hidden, "budget.2"))
        lead = None
        if setup["lead"]:
            points = leading_points(setup["n_features"])
            known = self.add(
                "Squeeze", self.add("Cast", known, to=self.onnx.TensorProto.INT64), [1]
            )
            point = self.add("Gather", points, self.add("Mod", known, [LEADING]))
            lead = self.add("Mul", point, self.weights["lead"])
            point = self.add("Mul", point, np.float32(math.sqrt(3)))
            hidden = self.silu(self.linear(point, "follow.0"))
            h = self.add("Add", h, self.linear(hidden, "follow.2"))
        h = self.forth(h, "start")
        for i in range(setup["layers"]):
            name = f"readings.{i}"
            asked = self.linear(self.norm(h, f"{name}.norm"), f"{name}.ask")
            asked = self.add("Mul", asked, np.float32(1 / math.sqrt(width // heads)))
            asked = self.add("Reshape", asked, [0, heads, 1, width // heads])
            keys, values = (
                self.add(
                    "Transpose",
                    self.add("Reshape", part(1 + 2 * i + j), [0, 0, heads, width // heads]),
                    perm=perm,
                )
                for j, perm in enumerate(([0, 2, 3, 1], [0, 2, 1, 3]))
            )
            scores = self.add("Add", self.add("MatMul", asked, keys), hidden_keys)
            read = self.add("MatMul", self.add("Softmax", scores, axis=-1), values)
            read = self.linear(self.add("Reshape", read, [0, width]), f"{name}.out")
            h = self.forth(self.add("Add", h, read), f"{name}.forth")
        h = self.linear(self.norm(h, "norm"), "head")
        return h if lead is None else self.add("Add", h, lead)

    def within_reach(self, x, setup):
        """Lagged features brought within their steps."""
        if not setup["lags"]:
            return x
        columns = [self.add("Slice", x, [i], [i + 1], [1]) for i in range(setup["n_features"])]
        for later, earlier, step in setup["lags"]:
            start, step = columns[earlier], np.float32(step)
            low = self.add("Max", self.add("Sub", start, step), np.float32(0))
            high = self.add("Min", self.add("Add", start, step), np.float32(1))
            columns[later] = self.add("Min", self.add("Max", columns[later], low), high)
        return self.add("Concat", *columns, axis=1)

    def model(self, header):
        onnx, setup = self.onnx, complete(header["architecture"])
        self.longest, self.n_init = header["max_budget"], header.get("n_init", 1)
        h = {"transformer": self.transformer, "reader": self.reader}[setup["kind"]](setup)
        if setup["output"] == "clip":
            h = self.add("Clip", h, np.float32(-1), np.float32(1))
        else:
            h = self.add("Tanh", h)
        x = self.add("Add", self.add("Mul", h, np.float32(0.5)), np.float32(0.5))
        self.add("Identity", self.within_reach(x, setup), output="x")

        def value(name, kind, *shape):
            return onnx.helper.make_tensor_value_info(name, kind, shape)

        number, truth = onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL
        inputs = [
            value("budget", number, "B"),
            value("X", number, "B", "n", setup["n_features"]),
            value("y", number, "B", "n"),
            *([value("margin", number, "B", "n")] if setup["safe"] else []),
            value("mask", truth, "B", "n"),
        ]
        outputs = [value("x", number, "B", setup["n_features"])]
        graph = onnx.helper.make_graph(
            self.nodes, "policy", inputs, outputs, [*self.constants.values()]
        )
        opset = onnx.helper.make_opsetid("", _OPSET)
        # The version that goes with the opset, so that older runtimes read the file as well.
        model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
        onnx.helper.set_model_props(model, {"header": json.dumps(header)})
        return model
