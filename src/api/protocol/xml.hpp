// XML as the AWS protocols use it: elements and text. A reader with limits (no document types, no entities
// but the five of the standard) and a writer that appends.
//
// Threads: pure functions. Errors: invalid, with the place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/shapes/shape.hpp"
#include "base/result.hpp"

namespace trainyard::api {

struct XmlElement {
  std::string name;  // without its prefix
  std::string text;  // all character data directly inside
  std::vector<XmlElement> children;
};

// The root element. Limits: kDepthMax deep, kValuesMax elements.
Result<XmlElement> parse_xml(std::string_view text);

void append_xml_text(std::string& out, std::string_view text);

// Fills a C++ value of `shape` from an element, and writes one as <name>..</name>. What the shape does not
// have is ignored.
Result<void> read_xml(const shapes::Shape& shape, shapes::TimestampFormat format, const XmlElement& element,
                      void* value);
void write_xml(const shapes::Shape& shape, shapes::TimestampFormat format, std::string_view name,
               const void* value, std::string& out);
// The members of a structure that travel in the body, without an element around them.
Result<void> read_xml_members(const shapes::Shape& shape, const XmlElement& element, void* structure);
void write_xml_members(const shapes::Shape& shape, const void* structure, std::string& out);

}  // namespace trainyard::api
