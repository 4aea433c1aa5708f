// Parses any bytes, and checks that the text of the root and of its attributes is well-formed XML
// when it is written again.
// decoder: src/foundation/base/xml.cpp
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "base/xml.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = trainyard::parse_xml({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  std::string text = parsed->text;
  for (const auto& attribute : parsed->attributes) text += attribute.text;
  CHECK(bool(trainyard::parse_xml("<a>" + trainyard::xml_text(text) + "</a>")),
        "what is written is XML");
  return 0;
}
