"""Runs as a training script with an error."""


def train() -> None:
    raise ValueError("no such column")


print("epoch 1", flush=True)
train()
