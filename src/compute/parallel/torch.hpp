// Includes the part of libtorch that the modules of compute use: tensors and their gradients.
//
// Libtorch's headers define macros with the same names as ours, which are removed here: include
// this file instead.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#undef CHECK
#undef LOG

#include "base/check.hpp"
