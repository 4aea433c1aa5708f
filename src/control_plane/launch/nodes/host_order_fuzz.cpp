// decoder: src/control_plane/launch/nodes/host_order.cpp
//
// Reads any bytes as the order of a host on a node, and their first two lines as the parts of one.
// Writing and reading must not change an accepted order, nor splitting and joining it.
#include <cstdint>

#include "base/check.hpp"
#include "launch/nodes/host_order.hpp"

using namespace trainyard;
using namespace trainyard::launch;

namespace {

Result<HostOrder> read(std::string_view text) {
  const size_t line = text.find('\n');
  if (line == std::string_view::npos) return read_host_order(text);
  return join_order(text.substr(0, line), text.substr(line + 1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto order = read({reinterpret_cast<const char*>(data), size});
  if (!order) return 0;
  const std::string text = to_text(*order);
  const auto again = read_host_order(text);
  CHECK(again && to_text(*again) == text, "an order is read as it was written");
  CHECK(has_same_network(*order, *again) == has_same_network(*again, *order),
        "the order of two equal orders does not matter");
  const auto split = split_orders({*order, *again});
  const auto joined = join_order(split.shared, split.own.back());
  CHECK(joined && to_text(*joined) == text, "an order is joined from its parts");
  return 0;
}
