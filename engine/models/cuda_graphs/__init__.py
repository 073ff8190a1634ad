"""Steps of fixed shapes over fixed memory, which a GPU can replay as one captured graph.

A step of a small batch is thousands of kernels of some microseconds, and launching them one by one takes longer than
they run. So on CUDA a family pads its rows to a bucket, copies its contexts into slots, and replays the bucket's graph.
What is padded is masked and changes no answer. Elsewhere the same functions run uncaptured, and the tests hold them to
the plain path; a processor is faster without padding and does not take this way.
"""
