// XML as the AWS protocols use it: elements and text. A reader with limits (no document types, no entities but the five
// of the standard; attributes are passed over) and a writer that appends.
//
// Threads: pure. Errors: invalid, with the place.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard {

inline constexpr int kXmlDepthMax = 64;             // the deepest of AWS's documents is a quarter of it
inline constexpr size_t kXmlElementsMax = 200'000;  // a page of 10,000 parts has some 70,000

struct XmlElement {
  std::string name;  // without its prefix
  std::string text;  // all character data directly inside
  std::vector<XmlElement> children;

  const XmlElement* child(
      std::string_view wanted) const;  // the first of that name; nullptr when there is none
  std::string text_of(std::string_view child_name) const;  // "" when there is none
};

// The root element.
Result<XmlElement> parse_xml(std::string_view text);

// What XML 1.0 cannot say, control characters, becomes U+FFFD.
void append_xml_text(std::string& out, std::string_view text);
std::string xml_text(std::string_view text);

}  // namespace trainyard
