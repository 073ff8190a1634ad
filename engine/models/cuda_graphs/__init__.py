"""Steps of fixed shapes in fixed memory, which a GPU can replay as one captured graph.

A step of a small batch launches thousands of kernels of a few microseconds each. One by one, the launches take longer
than the kernels. So on CUDA a model pads its rows to a bucket, copies its contexts into slots, and replays the graph of
that bucket. Padding is masked and changes no result. Without CUDA the same functions run uncaptured, and tests compare
them with the plain path. A CPU is faster without padding, so it takes the plain path.
"""
