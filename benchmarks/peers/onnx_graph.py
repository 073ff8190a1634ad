"""The embedded network as an ONNX graph, with its matrices and embeddings in int8. It needs onnx and onnxruntime.

The matrices are quantized by onnxruntime's dynamic quantization: the rows before a product become int8 too, with one
scale for all rows of a pass.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.models.embedded.shape import Shape
from engine.models.embedded.weights import Weights

_OPSET = 17


class _Graph:
    """Nodes and constants, one after the other; each method returns the name of what it adds."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def op(self, kind: str, *inputs: str, output: str = "", **attributes: object) -> str:
        from onnx import helper

        name = output or f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"node{len(self.nodes)}", **attributes))
        return name

    def constant(self, values: NDArray[Any]) -> str:
        from onnx import numpy_helper

        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def size(self, *sizes: int) -> str:
        return self.constant(np.array(sizes, np.int64))

    def part(self, values: str, first: int, stop: int, axis: int) -> str:
        return self.op("Slice", values, self.size(first), self.size(stop), self.size(axis))

    def normalized(self, rows: str, gains: NDArray[np.float32], epsilon: float) -> str:
        """Scale the last axis to unit mean square, times gains."""
        mean = self.op("ReduceMean", self.op("Mul", rows, rows), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant(np.float32(epsilon).reshape(1))))
        return self.op("Mul", self.op("Div", rows, root), self.constant(gains))

    def rotated(self, rows: str, half: int) -> str:
        """Apply rotary positions to rows [rows, heads, head_width]."""
        first, second = self.part(rows, 0, half, -1), self.part(rows, half, 2 * half, -1)
        upper = self.op("Sub", self.op("Mul", first, "cosine"), self.op("Mul", second, "sine"))
        lower = self.op("Add", self.op("Mul", second, "cosine"), self.op("Mul", first, "sine"))
        return self.op("Concat", upper, lower, axis=-1)


def write_quantized(weights: Weights, shape: Shape, folder: Path) -> Path:
    """Write the graph in fp32 and in int8 into `folder`, and return the path of the latter."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    logging.getLogger().setLevel(logging.ERROR)  # It advises on preprocessing, which changes nothing here.
    whole, quantized = folder / "whole.onnx", folder / "int8.onnx"
    onnx.save(_model(weights, shape), whole)
    quantize_dynamic(
        whole, quantized, op_types_to_quantize=["MatMul", "Gather"], per_channel=True, weight_type=QuantType.QInt8
    )
    return quantized


def _model(weights: Weights, shape: Shape) -> Any:
    from onnx import TensorProto, helper

    graph = _Graph()
    rows = graph.op("Gather", graph.constant(weights.dense("embed.weight")), "tokens")
    outputs = []
    for layer in range(shape.layers):
        mixed = _attention(graph, weights, shape, layer, rows)
        outputs += [f"present{2 * layer}", f"present{2 * layer + 1}"]
        rows = graph.op("Add", rows, _product(graph, weights, f"blocks.{layer}.out", mixed))
        both = _product(
            graph,
            weights,
            f"blocks.{layer}.gate_up",
            _normalized(graph, weights, shape, f"blocks.{layer}.feed_norm", rows),
        )
        gate, up = graph.part(both, 0, shape.hidden, -1), graph.part(both, shape.hidden, 2 * shape.hidden, -1)
        hidden = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), up)
        rows = graph.op("Add", rows, _product(graph, weights, f"blocks.{layer}.down", hidden))
    trunk = _normalized(graph, weights, shape, "norm", graph.op("Gather", rows, "wanted"))
    logits = graph.op("Identity", _product(graph, weights, "embed", trunk), output="logits")
    floats, ints, half = TensorProto.FLOAT, TensorProto.INT64, shape.head_width // 2
    value, key_width = helper.make_tensor_value_info, shape.key_heads * shape.head_width
    inputs = [value("tokens", ints, ["rows"]), value("mask", floats, ["rows", "keys"])]
    inputs += [value(name, floats, ["rows", 1, half]) for name in ("cosine", "sine")]
    inputs += [value("wanted", ints, ["wanted"])]
    inputs += [value(f"past{number}", floats, ["past", key_width]) for number in range(2 * shape.layers)]
    given = [value(logits, floats, ["wanted", shape.vocabulary])]
    given += [value(name, floats, ["keys", key_width]) for name in outputs]
    made = helper.make_graph(graph.nodes, "midspan", inputs, given, graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)


def _product(graph: _Graph, weights: Weights, name: str, rows: str) -> str:
    return graph.op("MatMul", rows, graph.constant(weights.dense(f"{name}.weight").T))


def _normalized(graph: _Graph, weights: Weights, shape: Shape, name: str, rows: str) -> str:
    return graph.normalized(rows, weights.dense(f"{name}.weight"), shape.norm_epsilon)


def _attention(graph: _Graph, weights: Weights, shape: Shape, layer: int, rows: str) -> str:
    heads, keys, head = shape.heads, shape.key_heads, shape.head_width
    qkv = _product(
        graph, weights, f"blocks.{layer}.qkv", _normalized(graph, weights, shape, f"blocks.{layer}.norm", rows)
    )
    parts = graph.op("Reshape", qkv, graph.size(-1, heads + 2 * keys, head))
    turned = graph.rotated(graph.part(parts, 0, heads + keys, 1), head // 2)
    present = []
    own = graph.part(turned, heads, heads + keys, 1), graph.part(parts, heads + keys, heads + 2 * keys, 1)
    for number, each in enumerate(own, 2 * layer):
        flat = graph.op("Reshape", each, graph.size(-1, keys * head))
        present.append(graph.op("Concat", f"past{number}", flat, output=f"present{number}", axis=0))

    def by_head(values: str, sharing: int, order: list[int]) -> str:
        return graph.op("Transpose", graph.op("Reshape", values, graph.size(-1, keys, sharing, head)), perm=order)

    query = by_head(graph.part(turned, 0, heads, 1), heads // keys, [1, 2, 0, 3])
    scores = graph.op("MatMul", query, by_head(present[0], 1, [1, 2, 3, 0]))
    scaled = graph.op("Mul", scores, graph.constant(np.float32(head**-0.5).reshape(1)))
    shares = graph.op("Softmax", graph.op("Add", scaled, "mask"), axis=-1)
    mixed = graph.op("MatMul", shares, by_head(present[1], 1, [1, 2, 0, 3]))
    return graph.op("Reshape", graph.op("Transpose", mixed, perm=[2, 0, 1, 3]), graph.size(-1, heads * head))
