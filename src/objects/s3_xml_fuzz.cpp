#include <cstddef>
#include <cstdint>

#include "objects/xml.hpp"

// decoder: src/objects/xml.cpp
// An answer of an S3 endpoint, of any bytes: a tree or an error, never more.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = trainyard::objects::parse_xml({reinterpret_cast<const char*>(data), size});
  if (parsed) {
    parsed->child("Error");
    trainyard::objects::escape_xml(parsed->text_of("Message"));
  }
  return 0;
}
