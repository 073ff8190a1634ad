"""DiffusionGemma (google/diffusiongemma-26B-A4B-it and related models). The canvas of a hole ends with the suffix."""
