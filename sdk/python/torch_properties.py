"""Prints the properties of the installed torch that CMakeLists.txt needs, one per line."""

import os

import torch
from torch.utils import cpp_extension

names = {
    "COMPILER_TYPE": "_PYBIND11_COMPILER_TYPE",
    "STDLIB": "_PYBIND11_STDLIB",
    "BUILD_ABI": "_PYBIND11_BUILD_ABI",
}
definitions = [
    f'PYBIND11_{name}="{getattr(torch._C, attribute)}"'
    for name, attribute in names.items()
    if getattr(torch._C, attribute, None)
]
print(torch.__version__)
print(int(torch._C._GLIBCXX_USE_CXX11_ABI))
print(os.path.join(os.path.dirname(torch.__file__), "lib"))
print("|".join(cpp_extension.include_paths()))
print("|".join(definitions))
