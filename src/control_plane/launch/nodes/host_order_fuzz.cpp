// decoder: src/control_plane/launch/nodes/host_order.cpp
//
// Reads any bytes as the order of a host on a Slurm node. Writing and reading must not change an
// accepted order.
#include <cstdint>

#include "base/check.hpp"
#include "launch/nodes/host_order.hpp"

using namespace trainyard;
using namespace trainyard::launch;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto order = read_host_order({reinterpret_cast<const char*>(data), size});
  if (!order) return 0;
  const std::string text = to_text(*order);
  const auto again = read_host_order(text);
  CHECK(again && to_text(*again) == text, "an order is read as it was written");
  CHECK(has_same_network(*order, *again) == has_same_network(*again, *order),
        "the order of two equal orders does not matter");
  return 0;
}
