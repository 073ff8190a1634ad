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

    def normalized(self, rows: str) -> str:
        """Scale the last axis to unit mean square."""
        mean = self.op("ReduceMean", self.op("Mul", rows, rows), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.constant(np.float32(1e-12).reshape(1))))
        return self.op("Div", rows, root)

    def rotated(self, rows: str, half: int) -> str:
        """Apply rotary positions to rows [rows, 1, heads, head_width]."""
        first = self.op("Slice", rows, self.size(0), self.size(half), self.size(-1))
        second = self.op("Slice", rows, self.size(half), self.size(2 * half), self.size(-1))
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
    rows = _entry(graph, weights, shape)
    outputs = []
    for layer in range(shape.layers):
        mixed = _attention(graph, weights, shape, layer, rows)
        outputs += [f"present{2 * layer}", f"present{2 * layer + 1}"]
        rows = graph.op("Add", rows, _product(graph, weights, f"blocks.{layer}.out", mixed))
        hidden = graph.op("Relu", _product(graph, weights, f"blocks.{layer}.up", graph.normalized(rows)))
        squared = graph.op("Mul", hidden, hidden)
        rows = graph.op("Add", rows, _product(graph, weights, f"blocks.{layer}.down", squared))
    trunk = graph.op("Identity", graph.normalized(graph.op("Gather", rows, "wanted")), output="trunk")
    logits = graph.op("Identity", _product(graph, weights, "head", trunk), output="logits")
    floats, ints, half = TensorProto.FLOAT, TensorProto.INT64, shape.head_width // 2
    value = helper.make_tensor_value_info
    inputs = [value(name, ints, ["rows"]) for name in ("tokens", "hints", "strengths")]
    inputs += [value("grams", ints, ["rows", 2]), value("mask", floats, ["rows", "keys"])]
    inputs += [value(name, floats, ["rows", 1, 1, half]) for name in ("cosine", "sine")]
    inputs += [value("wanted", ints, ["wanted"])]
    inputs += [value(f"past{number}", floats, ["past", shape.width]) for number in range(2 * shape.layers)]
    given = [value(logits, floats, ["wanted", shape.vocabulary]), value(trunk, floats, ["wanted", shape.width])]
    given += [value(name, floats, ["keys", shape.width]) for name in outputs]
    made = helper.make_graph(graph.nodes, "midspan", inputs, given, graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)


def _product(graph: _Graph, weights: Weights, name: str, rows: str) -> str:
    return graph.op("MatMul", rows, graph.constant(weights.dense(f"{name}.weight").T))


def _entry(graph: _Graph, weights: Weights, shape: Shape) -> str:
    def looked_up(name: str, indices: str) -> str:
        return graph.op("Gather", graph.constant(weights.dense(f"{name}.weight")), indices)

    hint = graph.op("Mul", looked_up("hint", "hints"), looked_up("strength", "strengths"))
    flat = graph.op("Reshape", looked_up("gram", "grams"), graph.size(-1, 2 * shape.gram_width))
    sides = graph.op("Add", hint, _product(graph, weights, "gram_out", flat))
    return graph.normalized(graph.op("Add", looked_up("embed", "tokens"), sides))


def _attention(graph: _Graph, weights: Weights, shape: Shape, layer: int, rows: str) -> str:
    heads, head, width = shape.heads, shape.head_width, shape.width
    qkv = _product(graph, weights, f"blocks.{layer}.qkv", graph.normalized(rows))
    parts = graph.op("Reshape", qkv, graph.size(-1, 3, heads, head))
    both = graph.op("Slice", parts, graph.size(0), graph.size(2), graph.size(1))
    values = graph.op("Slice", parts, graph.size(2), graph.size(3), graph.size(1))
    turned = graph.rotated(graph.normalized(both), head // 2)
    query = graph.op("Slice", turned, graph.size(0), graph.size(1), graph.size(1))
    keys = graph.op("Slice", turned, graph.size(1), graph.size(2), graph.size(1))
    present = []
    for number, own in ((2 * layer, keys), (2 * layer + 1, values)):
        flat = graph.op("Reshape", own, graph.size(-1, width))
        present.append(graph.op("Concat", f"past{number}", flat, output=f"present{number}", axis=0))

    def by_head(flat: str, order: list[int]) -> str:
        return graph.op("Transpose", graph.op("Reshape", flat, graph.size(-1, heads, head)), perm=order)

    scores = graph.op("MatMul", by_head(query, [1, 0, 2]), by_head(present[0], [1, 2, 0]))
    scaled = graph.op("Mul", scores, graph.constant(np.float32(head**-0.5).reshape(1)))
    shares = graph.op("Softmax", graph.op("Add", scaled, "mask"), axis=-1)
    mixed = graph.op("MatMul", shares, by_head(present[1], [1, 0, 2]))
    return graph.op("Reshape", graph.op("Transpose", mixed, perm=[1, 0, 2]), graph.size(-1, width))
