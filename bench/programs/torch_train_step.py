"""Runs training steps of ResNet-18 in PyTorch: torch_train_step.py IMAGES STEPS THREADS FORMAT

The network and the step of train_step.cpp, with the parts that PyTorch has for it: torch.nn and
torch.optim.SGD. FORMAT is contiguous or channels_last. Prints the microseconds of the median step.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import torch
from torch import nn

CLASSES = 1000
WARM_UP = 2


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result = self.relu(self.bn1(self.conv1(values)))
        added: torch.Tensor = self.bn2(self.conv2(result)) + self.shortcut(values)
        activated: torch.Tensor = self.relu(added)
        return activated


def resnet_18() -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for outputs in (64, 128, 256, 512):
        layers.append(Block(inputs, outputs, 1 if outputs == 64 else 2))
        layers.append(Block(outputs, outputs, 1))
        inputs = outputs
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES)]
    return nn.Sequential(*layers)


def main(images: int, steps: int, threads: int, memory_format: str) -> None:
    torch.set_num_threads(threads)
    model = resnet_18()
    images_of_step = torch.randn(images, 3, 224, 224)
    labels = torch.randint(CLASSES, (images,))
    if memory_format == "channels_last":
        model = model.to(memory_format=torch.channels_last)
        images_of_step = images_of_step.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    microseconds = []
    for step in range(WARM_UP + steps):
        began = time.perf_counter()
        optimizer.zero_grad()
        criterion(model(images_of_step), labels).backward()
        optimizer.step()
        if step >= WARM_UP:
            microseconds.append((time.perf_counter() - began) * 1e6)
    print(json.dumps({"microseconds": statistics.median(microseconds)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
