"""Waiting for a device, once a pass: what a pass takes is measured, and budgets are counted in it."""

import torch


def synchronize(device: torch.device) -> None:
    """Return when all that was asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
