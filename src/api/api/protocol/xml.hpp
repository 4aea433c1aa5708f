// Shapes from XML and to XML.
//
// Threads: pure functions. Errors: invalid, with the place.
#pragma once

#include <string>
#include <string_view>

#include "api/shapes/shape.hpp"
#include "base/result.hpp"
#include "base/xml.hpp"

namespace trainyard::api {

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
