#include "protocol/query.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "protocol/values.hpp"
#include "protocol/xml.hpp"

namespace trainyard::api {
namespace {

using shapes::Member;
using shapes::Shape;
using shapes::ShapeKind;
using shapes::TimestampFormat;

// "A.member.1.B=x" as a tree with one level per dot.
struct Node {
  std::optional<std::string_view> value;
  std::map<std::string_view, Node> children;
};

Result<Node> tree_of(const NameValues& parameters) {
  Node root;
  for (const auto& [name, value] : parameters) {
    Node* node = &root;
    int depth = 0;
    for (const auto step : split(name, '.')) {
      if (++depth > kDepthMax)
        return invalid("the parameter " + shorten(name, 100) + " is nested too deeply: at most " +
                       std::to_string(kDepthMax) + " levels");
      node = &node->children[step];
    }
    if (!node->value) node->value = value;
  }
  return root;
}

// The children "1", "2", .. in the order of their numbers. Gaps are allowed.
std::vector<const Node*> numbered(const Node& node) {
  std::vector<std::pair<int64_t, const Node*>> found;
  for (const auto& [name, child] : node.children)
    if (const auto number = parse_int(name); number && *number > 0)
      found.emplace_back(*number, &child);
  std::sort(found.begin(), found.end());
  std::vector<const Node*> out;
  for (const auto& [number, child] : found) out.push_back(child);
  return out;
}

Result<void> read_node(const Shape& shape, TimestampFormat format, const Node& node, void* to,
                       int depth) {
  if (depth > kDepthMax)
    return invalid("the parameters are nested too deeply: at most " + std::to_string(kDepthMax) +
                   " levels");
  switch (shape.kind) {
    case ShapeKind::structure:
      for (const Member& member : shape.members) {
        const auto found = node.children.find(member.query_name);
        if (found == node.children.end()) continue;
        TRY(read_node(*member.shape, member.timestamp_format, found->second, member.emplace(to),
                      depth + 1)
                .in(member.name));
      }
      return ok();
    case ShapeKind::list: {
      // "List=" alone is an empty list. In a flattened list the numbers follow the name directly.
      const auto members = node.children.find(shape.element_name);
      const Node* from = shape.flattened_in_query         ? &node
                         : members == node.children.end() ? nullptr
                                                          : &members->second;
      if (!from) return ok();
      for (const Node* item : numbered(*from))
        TRY(read_node(*shape.element, TimestampFormat::unset, *item, shape.append(to), depth + 1));
      return ok();
    }
    case ShapeKind::map: {
      const auto entries = node.children.find("entry");
      const Node* from = shape.flattened                  ? &node
                         : entries == node.children.end() ? nullptr
                                                          : &entries->second;
      if (!from) return ok();
      for (const Node* entry : numbered(*from)) {
        const auto key = entry->children.find(shape.key_name),
                   value = entry->children.find(shape.value_name);
        if (key == entry->children.end() || value == entry->children.end() || !key->second.value)
          return invalid("a map entry needs both " + std::string(shape.key_name) + " and " +
                         std::string(shape.value_name));
        TRY(read_node(*shape.element, TimestampFormat::unset, value->second,
                      shape.insert(to, std::string(*key->second.value)), depth + 1));
      }
      return ok();
    }
    default:
      return read_scalar(shape, format, node.value.value_or(""), to);
  }
}

}  // namespace

Result<NameValues> read_form(std::string_view form) {
  NameValues out;
  if (form.empty()) return out;
  for (const auto part : split(form, '&')) {
    if (part.empty()) continue;
    if (out.size() == kValuesMax)
      return invalid("the form has more than " + std::to_string(kValuesMax) + " parameters");
    const auto equals = part.find('=');
    std::string name = TRY(percent_decode(part.substr(0, equals), true));
    std::string value = equals == std::string_view::npos
                            ? std::string()
                            : TRY(percent_decode(part.substr(equals + 1), true));
    if (!is_utf8(name) || !is_utf8(value))
      return invalid("the form parameter '" + shorten(name, 100) + "' is not valid UTF-8");
    out.emplace_back(std::move(name), std::move(value));
  }
  return out;
}

Result<void> read_query(const Shape& shape, const NameValues& parameters, void* structure) {
  return read_node(shape, TimestampFormat::unset, TRY(tree_of(parameters)), structure, 0);
}

namespace {

// EC2 writes the request ID and the members of the output in one element, and <return>true</return>
// for operations without output.
std::string write_ec2_query(const shapes::OperationShape& operation, const void* output,
                            std::string_view request_id) {
  std::string out = "<" + std::string(operation.name) + "Response xmlns=\"";
  out.append(operation.service->xml_namespace)
      .append("/\">\n<requestId>")
      .append(request_id)
      .append("</requestId>\n");
  if (operation.output)
    write_xml_members(*operation.output, output, out);
  else
    out += "<return>true</return>";
  return out.append("\n</").append(operation.name).append("Response>\n");
}

}  // namespace

std::string write_query(const shapes::OperationShape& operation, const void* output,
                        std::string_view request_id) {
  if (operation.service->ec2_query) return write_ec2_query(operation, output, request_id);
  const std::string response = std::string(operation.name) + "Response";
  std::string out = "<" + response;
  if (!operation.service->xml_namespace.empty())
    out.append(" xmlns=\"").append(operation.service->xml_namespace).append("\"");
  out += ">\n";
  if (operation.output) {
    const std::string result = operation.result_wrapper.empty()
                                   ? std::string(operation.name) + "Result"
                                   : std::string(operation.result_wrapper);
    out.append("<").append(result).append(">");
    write_xml_members(*operation.output, output, out);
    out.append("</").append(result).append(">\n");
  }
  out.append("<ResponseMetadata><RequestId>")
      .append(request_id)
      .append("</RequestId></ResponseMetadata>\n</");
  return out.append(response).append(">\n");
}

}  // namespace trainyard::api
