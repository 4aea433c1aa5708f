// Decodes any bytes as a safetensors file. Decoded tensors encode to a file that decodes to them.
// decoder: src/compute/checkpoint/safetensors.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "checkpoint/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto contents = checkpoint::decode(bytes);
  if (!contents) return 0;
  uint64_t sum = 0;
  for (const auto& [name, tensor] : contents->tensors) {
    CHECK(tensor.elements() * checkpoint::bytes_of(tensor.type) == tensor.bytes.size(),
          "a tensor has the bytes of its shape");
    sum += tensor.bytes.size();
  }
  CHECK(sum <= size, "no byte belongs to two tensors");
  const std::string encoded = checkpoint::encode(*contents);
  const auto again = checkpoint::decode(encoded);
  CHECK(again && again->tensors.size() == contents->tensors.size() &&
            again->metadata == contents->metadata,
        "decoded tensors can be encoded and decoded again");
  for (const auto& [name, tensor] : contents->tensors) {
    const auto& other = again->tensors.at(name);
    CHECK(other.bytes == tensor.bytes && other.shape == tensor.shape && other.type == tensor.type,
          "a tensor is the same after encoding");
  }
  return 0;
}
