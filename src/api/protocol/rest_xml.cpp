#include "protocol/rest_xml.hpp"

#include "base/text.hpp"
#include "protocol/values.hpp"
#include "protocol/xml.hpp"

namespace trainyard::api {
namespace {

using shapes::Location;
using shapes::Member;
using shapes::Shape;
using shapes::ShapeKind;
using shapes::TimestampFormat;

constexpr size_t kParametersMax = 1000;  // in one query string; S3's longest has a dozen

// Timestamps in headers are HTTP dates, and those in queries ISO 8601, unless the model has a
// format.
TimestampFormat format_of(const Member& member) {
  if (member.timestamp_format != TimestampFormat::unset) return member.timestamp_format;
  if (member.shape->timestamp_format != TimestampFormat::unset)
    return member.shape->timestamp_format;
  return member.location == Location::header ? TimestampFormat::http_date
                                             : TimestampFormat::iso8601;
}

Result<void> read_text(const Member& member, std::string_view text, void* structure) {
  const Shape& shape = *member.shape;
  void* value = member.emplace(structure);
  if (shape.kind == ShapeKind::list) {
    for (const auto item : split(text, ','))
      TRY(read_scalar(*shape.element, TimestampFormat::unset, trim(item), shape.append(value))
              .in(member.wire_name));
    return ok();
  }
  return read_scalar(shape, format_of(member), text, value).in(member.wire_name);
}

Result<void> read_prefixed(const Member& member, const NameValues& headers, void* structure) {
  void* map = nullptr;
  for (const auto& [name, value] : headers) {
    const size_t length = member.wire_name.size();
    if (name.size() <= length ||
        !equals_ignoring_case(std::string_view(name).substr(0, length), member.wire_name))
      continue;
    if (!map) map = member.emplace(structure);
    TRY(read_scalar(*member.shape->element, TimestampFormat::unset, value,
                    member.shape->insert(map, to_lower(name.substr(length)))));
  }
  return ok();
}

Result<void> read_outside_body(const Member& member, const RestRequest& request, void* structure) {
  switch (member.location) {
    case Location::uri: {
      const auto found = request.labels.find(std::string(member.wire_name));
      return found == request.labels.end() ? ok() : read_text(member, found->second, structure);
    }
    case Location::query_string:
      for (const auto& [name, value] : request.query) {
        if (name != member.wire_name) continue;
        if (member.shape->kind == ShapeKind::list) {  // one parameter for each element
          void* list = const_cast<void*>(member.find(structure));
          if (!list) list = member.emplace(structure);
          TRY(read_scalar(*member.shape->element, {}, value, member.shape->append(list))
                  .in(member.wire_name));
          continue;
        }
        // An empty number or flag counts as absent.
        if (value.empty() && member.shape->kind != ShapeKind::string) return ok();
        return read_text(member, value, structure);
      }
      return ok();
    case Location::header:
      for (const auto& [name, value] : request.headers) {
        if (!equals_ignoring_case(name, member.wire_name)) continue;
        auto read = read_text(member, value, structure);
        // An invalid date is ignored, as HTTP requires (If-Modified-Since).
        if (!read && member.shape->kind == ShapeKind::timestamp) return ok();
        return read;
      }
      return ok();
    case Location::prefixed_headers:
      return read_prefixed(member, request.headers, structure);
    case Location::body:
    case Location::status_code:
      break;
  }
  return ok();
}

}  // namespace

Result<void> read_rest(const Shape& shape, const RestRequest& request, void* structure) {
  for (const Member& member : shape.members) TRY(read_outside_body(member, request, structure));
  if (shape.payload) {
    const Member& payload = *shape.payload;
    if (payload.streaming) return ok();
    if (payload.shape->kind != ShapeKind::structure) {
      if (!request.body.empty())
        *static_cast<std::string*>(payload.emplace(structure)) = request.body;
      return ok();
    }
    if (trim(request.body).empty()) return ok();
    const XmlElement root = TRY(parse_xml(request.body));
    if (request.known_elements_only) TRY(check_document(payload, root));
    return read_xml_members(*payload.shape, root, payload.emplace(structure));
  }
  bool in_body = false;
  for (const Member& member : shape.members) in_body = in_body || member.location == Location::body;
  if (!in_body || trim(request.body).empty()) return ok();
  return read_xml_members(shape, TRY(parse_xml(request.body)), structure);
}

RestReply write_rest(const shapes::Service& service, const Shape& shape, const void* structure) {
  RestReply reply;
  bool in_body = false;
  for (const Member& member : shape.members) {
    in_body = in_body || (member.location == Location::body && !member.streaming);
    const void* found = member.find(structure);
    if (!found) continue;
    if (member.location == Location::header) {
      reply.headers.emplace_back(std::string(member.wire_name),
                                 scalar_text(*member.shape, format_of(member), found));
    } else if (member.location == Location::prefixed_headers) {
      struct Visit {
        const Member* member;
        RestReply* reply;
      } visit{&member, &reply};
      member.shape->each(found, &visit,
                         [](void* context, const std::string& key, const void* value) {
                           const auto& state = *static_cast<Visit*>(context);
                           state.reply->headers.emplace_back(
                               std::string(state.member->wire_name) + key,
                               scalar_text(*state.member->shape->element, {}, value));
                         });
    }
  }
  if (!in_body) return reply;
  const auto open = [&](std::string_view name) {
    reply.body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<";
    reply.body.append(name);
    if (!service.xml_namespace.empty())
      reply.body.append(" xmlns=\"").append(service.xml_namespace).append("\"");
    reply.body += '>';
    reply.content_type = "application/xml";
  };
  if (shape.payload) {
    const Member& payload = *shape.payload;
    const void* found = payload.find(structure);
    if (!found || payload.streaming) return reply;
    if (payload.shape->kind != ShapeKind::structure) {
      reply.body = *static_cast<const std::string*>(found);
      return reply;
    }
    open(payload.wire_name);
    write_xml_members(*payload.shape, found, reply.body);
    reply.body.append("</").append(payload.wire_name).append(">");
    return reply;
  }
  if (shape.unwrapped) {
    const Member& only = shape.members.front();
    open(only.wire_name);
    if (const void* found = only.find(structure))
      append_xml_text(reply.body, scalar_text(*only.shape, format_of(only), found));
    reply.body.append("</").append(only.wire_name).append(">");
    return reply;
  }
  const std::string_view name = shape.xml_name.empty() ? shape.name : shape.xml_name;
  open(name);
  write_xml_members(shape, structure, reply.body);
  reply.body.append("</").append(name).append(">");
  return reply;
}

Result<NameValues> read_query_parameters(std::string_view query) {
  NameValues out;
  if (query.empty()) return out;
  for (const auto part : split(query, '&')) {
    if (part.empty()) continue;
    if (out.size() == kParametersMax)
      return invalid("the query has more than " + std::to_string(kParametersMax) + " parameters");
    const auto equals = part.find('=');
    std::string name = TRY(percent_decode(part.substr(0, equals)));
    std::string value = equals == std::string_view::npos
                            ? std::string()
                            : TRY(percent_decode(part.substr(equals + 1)));
    if (!is_utf8(name) || !is_utf8(value))
      return invalid("the query parameter '" + shorten(name, 100) + "' is not valid UTF-8");
    out.emplace_back(std::move(name), std::move(value));
  }
  return out;
}

}  // namespace trainyard::api
