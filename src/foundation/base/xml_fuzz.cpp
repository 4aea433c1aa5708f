// Parses any bytes: the result is a tree or an error. Written again, the text of the root is
// well-formed.
// decoder: src/foundation/base/xml.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/xml.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = trainyard::parse_xml({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  CHECK(bool(trainyard::parse_xml("<a>" + trainyard::xml_text(parsed->text) + "</a>")),
        "what is written is XML");
  return 0;
}
