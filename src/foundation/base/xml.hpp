// Reads XML as the AWS protocols use it (elements, attributes and text), and escapes text for XML.
// The reader rejects document types and all entities except the five predefined ones, and skips
// declarations of namespaces.
//
// Threads: pure. Errors: invalid, with the byte offset.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard {

// four times the depth of AWS's deepest document
inline constexpr int kXmlDepthMax = 64;
inline constexpr size_t kXmlElementsMax = 200'000;  // a page of 10,000 parts has about 70,000

inline constexpr size_t kXmlAttributesMax = 32;  // per element; AWS's documents have at most one

struct XmlAttribute {
  std::string name;  // without its prefix
  std::string text;
};

struct XmlElement {
  std::string name;  // without its prefix
  std::string text;  // all character data directly inside
  std::vector<XmlAttribute> attributes;
  std::vector<XmlElement> children;

  // Returns the first child with that name; nullptr if there is none.
  const XmlElement* child(std::string_view wanted) const;
  std::string text_of(std::string_view child_name) const;        // "" if there is no such child
  const XmlAttribute* attribute(std::string_view wanted) const;  // nullptr if there is none
};

// The detail of errors of parse_xml().
enum class XmlFault { not_well_formed };
// Returns the root element.
Result<XmlElement> parse_xml(std::string_view text);

// Escapes text. Control characters, which XML 1.0 does not allow, become U+FFFD.
void append_xml_text(std::string& out, std::string_view text);
std::string xml_text(std::string_view text);

}  // namespace trainyard
