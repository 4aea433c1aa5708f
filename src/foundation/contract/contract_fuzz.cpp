// Reads the contract's files with any content, since a job may write to them.
// decoder: src/foundation/contract/readers.cpp
#include <string>
#include <string_view>

#include "contract/contract.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // An empty input is replaced by a too large one, which cannot be committed.
  const std::string too_much(size == 0 ? (8 << 20) + 1 : 0, ' ');
  const std::string_view text =
      size == 0 ? too_much : std::string_view(reinterpret_cast<const char*>(data), size);
  (void)trainyard::contract::read_resources(text);
  (void)trainyard::contract::read_hyperparameters(text);
  (void)trainyard::contract::read_channels(text);
  (void)trainyard::contract::failure_reason(text, 1);
  return 0;
}
