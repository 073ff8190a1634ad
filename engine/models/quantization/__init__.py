"""Weights of a released model in few bits.

`quantizer` decides the precision, and quantizes the tensors of a network while they are read. `matrix` has the formats.
"""
