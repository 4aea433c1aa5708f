// The XML that S3 endpoints answer with, as a tree. Not a general reader: no DTDs, and attributes are passed
// over.
//
// Threads: pure. Errors: invalid, with the offset of the fault; exhausted past the limits.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::objects {

struct XmlNode {
  std::string name;  // without its namespace prefix
  std::string text;  // of this element itself, entities resolved
  std::vector<XmlNode> children;

  const XmlNode* child(std::string_view name) const;  // the first of that name; nullptr when there is none
  std::string text_of(std::string_view child_name) const;  // "" when there is none
};

inline constexpr size_t kXmlDepthMax = 16;       // S3's answers are five deep
inline constexpr size_t kXmlNodesMax = 200'000;  // a page of 10,000 parts has some 70,000

Result<XmlNode> parse_xml(std::string_view document);
// Text with & < > " ' and control characters as entities.
std::string escape_xml(std::string_view text);

}  // namespace trainyard::objects
