// Reads values of shapes from XML, and writes them.
//
// Threads: pure functions. Errors: invalid, with the position.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/xml.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

// Fills a C++ value of `shape` from an element, and writes one as <name>..</name>. Unknown elements
// are ignored.
Result<void> read_xml(const shapes::Shape& shape, shapes::TimestampFormat format,
                      const XmlElement& element, void* value);
void write_xml(const shapes::Shape& shape, shapes::TimestampFormat format, std::string_view name,
               const void* value, std::string& out);
// Checks an element of `shape` at any depth: it has only elements of the shape, each once except in
// a flattened list, and text only in scalars. Errors: invalid (outside_of_shape).
enum class XmlShapeFault { outside_of_shape };
Result<void> check_elements(const shapes::Shape& shape, const XmlElement& element);
// Does the same for a document, whose root element is the member `payload`.
Result<void> check_document(const shapes::Member& payload, const XmlElement& root);
// Reads and writes the members of a structure that are in the body, without an element around them.
Result<void> read_xml_members(const shapes::Shape& shape, const XmlElement& element,
                              void* structure);
void write_xml_members(const shapes::Shape& shape, const void* structure, std::string& out);

}  // namespace trainyard::api
