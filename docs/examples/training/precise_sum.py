import torch
from training.optim import AnyPrecisionAdamW

weight = torch.ones(1, dtype=torch.bfloat16, requires_grad=True)
optimizer = AnyPrecisionAdamW([weight], lr=1e-4)
for _ in range(100):
    weight.grad = torch.ones_like(weight)
    optimizer.step()
print(weight.item())  # 0.98828125; without the rest of the sum it would be 1.0
