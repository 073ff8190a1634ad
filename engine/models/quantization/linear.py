"""A linear layer whose matrix is held in few bits."""

from torch import Tensor, nn

from engine.models.quantization.matrix import Matrix


class QuantizedLinear(nn.Module):
    """Stands where an nn.Linear stood, and takes over its bias."""

    def __init__(self, matrix: Matrix, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.matrix, self.bias = matrix, bias
        self.out_features, self.in_features = matrix.shape

    def forward(self, rows: Tensor) -> Tensor:
        """Return [..., out] of rows [..., in]."""
        found = self.matrix.product(rows.reshape(-1, self.in_features)).view(*rows.shape[:-1], self.out_features)
        return found if self.bias is None else found + self.bias
