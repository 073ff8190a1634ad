"""`midspan serve`: the engine over HTTP, in the dialects that other people's plugins speak.

Each request becomes a Fill on the engine's own socket. So deadlines, fairness and cancels are the engine's.
"""
