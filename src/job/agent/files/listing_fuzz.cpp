// Decodes the files of a listing's marks, which a crash or a full disk may have cut.
// decoder: src/job/agent/files/listing_marks.cpp
#include <string>
#include <string_view>

#include "agent/files/listing_marks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::agent;
  const auto marks = decode_marks({reinterpret_cast<const char*>(data), size});
  if (!marks) return 0;
  const auto again = decode_marks(encode_marks(*marks));
  if (!again || *again != *marks) __builtin_trap();
  return 0;
}
