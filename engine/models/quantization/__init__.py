"""Precision: in how many bits the matrices of a released model's layers are held.

`name`, `selection` and `memory` are free of torch. `choice` decides, `holder` puts quantized matrices into a network
while its tensors are read, and each of `int8`, `int4`, `int4_kernel` and `fp8` is one way to hold a matrix.
"""
