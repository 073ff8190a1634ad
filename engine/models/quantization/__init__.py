"""Weights of a released model in few bits.

`choice` decides the precision. `quantizer` quantizes the tensors of a network while they are read. Each of `int8`,
`int4`, `int4_kernel` and `fp8` is one format of a matrix.
"""
