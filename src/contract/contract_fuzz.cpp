// The readers of the contract's files: what a job finds there may have been written by anybody.
// decoder: src/contract/readers.cpp
#include "contract/contract.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)trainyard::contract::read_resources(text);
  (void)trainyard::contract::read_hyperparameters(text);
  (void)trainyard::contract::read_channels(text);
  (void)trainyard::contract::failure_reason(text, 1);
  return 0;
}
