#include "protocol/xml.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "protocol/values.hpp"

namespace trainyard::api {
namespace {

using shapes::Location;
using shapes::Member;
using shapes::Shape;
using shapes::ShapeKind;
using shapes::TimestampFormat;

bool is_in_body(const Member& member) {
  return member.location == Location::body && !member.streaming && !member.xml_attribute;
}

// Writes the attributes of a structure's element. The only ones in AWS's models have the prefix
// xsi.
void append_attributes(const Shape& shape, const void* structure, std::string& out) {
  for (const Member& member : shape.members) {
    const void* found = member.xml_attribute ? member.find(structure) : nullptr;
    if (!found) continue;
    out.append(" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" ")
        .append(member.wire_name)
        .append("=\"");
    append_xml_text(out, to_utf8(scalar_text(*member.shape, TimestampFormat::unset, found)));
    out.append("\"");
  }
}

// The name of a member's element. A flattened list may have the name of its elements instead.
std::string_view element_name(const Member& member) {
  const Shape& shape = *member.shape;
  if (shape.kind == ShapeKind::list && shape.flattened && !member.named_on_wire &&
      shape.element_name != "member")
    return shape.element_name;
  return member.wire_name;
}

Result<void> read_entry(const Shape& shape, const XmlElement& entry, void* map) {
  const XmlElement *key = nullptr, *value = nullptr;
  for (const auto& child : entry.children) {
    if (child.name == shape.key_name) key = &child;
    if (child.name == shape.value_name) value = &child;
  }
  if (!key || !value)
    return invalid("a map entry has no <" + std::string(key ? shape.value_name : shape.key_name) +
                   ">");
  return read_xml(*shape.element, TimestampFormat::unset, *value,
                  shape.insert(map, std::string(key->text)));
}

// Ignores the namespace prefix of the attribute's name, as for elements.
Result<void> read_attribute(const Member& member, const XmlElement& element, void* structure) {
  const auto name = member.wire_name.substr(member.wire_name.rfind(':') + 1);
  if (const XmlAttribute* found = element.attribute(name))
    return read_scalar(*member.shape, member.timestamp_format, found->text,
                       member.emplace(structure))
        .in(std::string(name));
  return ok();
}

std::string tag(const XmlElement& element) { return "<" + shorten(element.name, 60) + ">"; }

Error outside_of_shape(std::string why) {
  return invalid(std::move(why), XmlShapeFault::outside_of_shape);
}

Error unknown(const XmlElement& child, const XmlElement& element) {
  return outside_of_shape(tag(child) + " is not known in " + tag(element));
}

Result<void> check_members(const Shape& shape, const XmlElement& element) {
  std::set<std::string_view> seen;
  for (const auto& child : element.children) {
    const auto member = std::ranges::find_if(shape.members, [&](const Member& each) {
      return is_in_body(each) && element_name(each) == child.name;
    });
    if (member == shape.members.end()) return unknown(child, element);
    const Shape& inner = *member->shape;
    if (!seen.insert(child.name).second && !inner.flattened)
      return outside_of_shape(tag(child) + " is repeated in " + tag(element));
    const bool of_list = inner.flattened && inner.kind == ShapeKind::list;
    TRY(check_elements(of_list ? *inner.element : inner, child));
  }
  return ok();
}

}  // namespace

Result<void> check_elements(const Shape& shape, const XmlElement& element) {
  const bool nested = shape.kind == ShapeKind::structure || shape.kind == ShapeKind::list;
  if (nested && !trim(element.text).empty())
    return outside_of_shape(tag(element) + " has text of its own");
  if (shape.kind == ShapeKind::structure) return check_members(shape, element);
  if (shape.kind == ShapeKind::map) return ok();  // no configuration has one
  for (const auto& child : element.children) {
    if (!nested || child.name != shape.element_name) return unknown(child, element);
    TRY(check_elements(*shape.element, child));
  }
  return ok();
}

Result<void> check_document(const Member& payload, const XmlElement& root) {
  if (root.name != payload.wire_name)
    return outside_of_shape("the root element is " + tag(root) + " instead of <" +
                            std::string(payload.wire_name) + ">");
  return check_elements(*payload.shape, root);
}

Result<void> read_xml(const Shape& shape, TimestampFormat format, const XmlElement& element,
                      void* value) {
  switch (shape.kind) {
    case ShapeKind::structure:
      return read_xml_members(shape, element, value);
    case ShapeKind::list:
      for (const auto& child : element.children)
        if (child.name == shape.element_name)
          TRY(read_xml(*shape.element, TimestampFormat::unset, child, shape.append(value)));
      return ok();
    case ShapeKind::map:
      for (const auto& child : element.children)
        if (child.name == "entry") TRY(read_entry(shape, child, value));
      return ok();
    default: {
      // Only strings keep surrounding spaces. Formatted XML has them around numbers, too.
      const bool text = shape.kind == ShapeKind::string;
      return read_scalar(shape, format, text ? std::string_view(element.text) : trim(element.text),
                         value)
          .in(element.name);
    }
  }
}

Result<void> read_xml_members(const Shape& shape, const XmlElement& element, void* structure) {
  for (const Member& member : shape.members) {
    if (member.xml_attribute) TRY(read_attribute(member, element, structure));
    if (!is_in_body(member)) continue;
    void* value = nullptr;
    for (const auto& child : element.children) {
      if (child.name != element_name(member)) continue;
      const bool many = member.shape->flattened;
      if (!value)
        value = member.emplace(structure);
      else if (!many)
        break;  // of repeated elements, the first counts
      if (many && member.shape->kind == ShapeKind::list)
        TRY(read_xml(*member.shape->element, TimestampFormat::unset, child,
                     member.shape->append(value)));
      else if (many)
        TRY(read_entry(*member.shape, child, value));
      else
        TRY(read_xml(*member.shape, member.timestamp_format, child, value));
    }
  }
  return ok();
}

void write_xml(const Shape& shape, TimestampFormat format, std::string_view name, const void* value,
               std::string& out) {
  if (shape.kind == ShapeKind::list && shape.flattened) {
    for (size_t i = 0; i < shape.size(value); ++i)
      write_xml(*shape.element, TimestampFormat::unset, name, shape.at(value, i), out);
    return;
  }
  out.append("<").append(name);
  if (shape.kind == ShapeKind::structure) append_attributes(shape, value, out);
  out.append(">");
  switch (shape.kind) {
    case ShapeKind::structure:
      write_xml_members(shape, value, out);
      break;
    case ShapeKind::list:
      for (size_t i = 0; i < shape.size(value); ++i)
        write_xml(*shape.element, TimestampFormat::unset, shape.element_name, shape.at(value, i),
                  out);
      break;
    case ShapeKind::map: {
      struct Visit {
        const Shape* shape;
        std::string* out;
      } visit{&shape, &out};
      shape.each(value, &visit, [](void* context, const std::string& key, const void* inner) {
        const auto& state = *static_cast<Visit*>(context);
        state.out->append("<entry><").append(state.shape->key_name).append(">");
        append_xml_text(*state.out, key);
        state.out->append("</").append(state.shape->key_name).append(">");
        write_xml(*state.shape->element, TimestampFormat::unset, state.shape->value_name, inner,
                  *state.out);
        state.out->append("</entry>");
      });
      break;
    }
    default:
      append_xml_text(out, to_utf8(scalar_text(shape, format, value)));
  }
  out.append("</").append(name).append(">");
}

void write_xml_members(const Shape& shape, const void* structure, std::string& out) {
  for (const Member& member : shape.members) {
    if (!is_in_body(member)) continue;
    if (const void* found = member.find(structure))
      write_xml(*member.shape, member.timestamp_format, element_name(member), found, out);
  }
}

}  // namespace trainyard::api
