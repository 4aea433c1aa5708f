// Parses any bytes as a shard, whose content the user controls.
// decoder: src/compute/train/table.cpp
#include "base/check.hpp"
#include "train/table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const auto table = train::parse_csv(std::string_view(reinterpret_cast<const char*>(data), size));
  if (table) {
    CHECK(table->features.size() == table->rows() * table->columns,
          "every row has all its features");
    for (const int32_t label : table->labels)
      CHECK(label >= 0 && label <= train::kLabelMax, "labels are within their limits");
  }
  return 0;
}
