#include "protocol/route.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::api {
namespace {

using shapes::Location;
using shapes::Member;
using shapes::OperationShape;
using shapes::Service;

// The operation of a scope that belongs to S3 and is not S3's own: clients use a directory bucket
// after they have made a session for it. "" = another scope.
std::string operation_of_scope(std::string_view scope, const net::RequestHead& head) {
  if (scope == "s3-object-lambda") return "WriteGetObjectResponse";
  if (scope == "s3express") return head.path() == "/" ? "ListDirectoryBuckets" : "CreateSession";
  return "";
}

// S3's subresources. In a query they change the meaning of a request, so a request with an
// unsupported one must be rejected.
constexpr std::string_view kSubresources[] = {"accelerate",
                                              "acl",
                                              "analytics",
                                              "attributes",
                                              "cors",
                                              "delete",
                                              "encryption",
                                              "intelligent-tiering",
                                              "inventory",
                                              "legal-hold",
                                              "lifecycle",
                                              "list-type",
                                              "location",
                                              "logging",
                                              "metrics",
                                              "notification",
                                              "object-lock",
                                              "ownershipControls",
                                              "policy",
                                              "policyStatus",
                                              "publicAccessBlock",
                                              "replication",
                                              "requestPayment",
                                              "restore",
                                              "retention",
                                              "select",
                                              "session",
                                              "tagging",
                                              "torrent",
                                              "uploadId",
                                              "uploads",
                                              "versioning",
                                              "versions",
                                              "website"};

struct Candidate {
  bool fits = false;
  int weight = 0;
  std::vector<std::string_view> used;  // query parameters that the operation reads
};

// `input`: nullptr if the operation has none, or it is not known.
Candidate weigh(std::string_view method, std::string_view uri, const shapes::Shape* input,
                const net::RequestHead& head, const S3Address& address) {
  Candidate out;
  const auto mark = uri.find('?');
  const std::string_view path = uri.substr(0, mark);
  const bool fixed = path.size() > 1 && path.find('{') == std::string_view::npos;
  if (fixed && path != head.path()) return out;
  const int level = path.find("{Key+}") != std::string_view::npos     ? 2
                    : path.find("{Bucket}") != std::string_view::npos ? 1
                                                                      : 0;
  const int requested = address.bucket.empty() ? 0 : address.key.empty() ? 1 : 2;
  if ((level != requested && !fixed) || method != head.method) return out;
  const auto has = [&](std::string_view name, std::optional<std::string_view> value) {
    return std::any_of(address.query.begin(), address.query.end(), [&](const auto& pair) {
      return pair.first == name && (!value || pair.second == *value);
    });
  };
  if (mark != std::string_view::npos) {
    for (const auto part : split(uri.substr(mark + 1), '&')) {
      const auto equals = part.find('=');
      const std::string_view name = part.substr(0, equals);
      if (!has(name, equals == std::string_view::npos ? std::nullopt
                                                      : std::optional(part.substr(equals + 1))))
        return out;
      out.used.push_back(name);
      out.weight += 2;
    }
  }
  if (input) {
    for (const Member& member : input->members) {
      if (member.location == Location::query_string) {
        out.used.push_back(member.wire_name);
        if (!member.required) continue;
        if (!has(member.wire_name, std::nullopt)) return out;
        out.weight += 2;
      } else if (member.location == Location::header && member.required) {
        if (!head.headers.has(member.wire_name)) return out;
        out.weight += 1;
      }
    }
  }
  out.fits = true;
  return out;
}

bool is_label(std::string_view segment) { return segment.starts_with('{'); }

// Operation: OperationShape or AbsentOperation.
template <class Operation>
bool path_fits(const Operation& operation, const net::RequestHead& head) {
  const auto wanted = split(operation.uri, '/'), requested = split(head.path(), '/');
  return operation.method == head.method &&
         std::equal(wanted.begin(), wanted.end(), requested.begin(), requested.end(),
                    [](std::string_view a, std::string_view b) {
                      return is_label(a) ? !b.empty() : a == b;
                    });
}

}  // namespace

std::string scope_service(const net::RequestHead& head) {
  std::string credential;
  const std::string_view authorization = head.headers.get("authorization");
  if (const auto found = authorization.find("Credential="); found != std::string_view::npos) {
    const std::string_view rest = authorization.substr(found + 11);
    credential = rest.substr(0, rest.find_first_of(", "));
  } else {
    for (const auto part : split(head.query(), '&')) {
      const auto equals = part.find('=');
      if (equals == std::string_view::npos ||
          !equals_ignoring_case(part.substr(0, equals), "X-Amz-Credential"))
        continue;
      if (auto decoded = percent_decode(part.substr(equals + 1))) credential = *decoded;
    }
  }
  const auto parts = split(credential, '/');  // a SigV4a scope has no region
  return parts.size() < 4 ? "" : std::string(parts[parts.size() - 2]);
}

bool uses_rest_json(const Service& service) {
  return service.target_prefix.empty() && !service.query && !service.json_version.empty();
}

std::string_view target_prefix_of(const Service& service) {
  const bool query_alone = service.query && !service.ec2_query && service.target_prefix.empty();
  return query_alone ? service.name : service.target_prefix;
}

Result<std::map<std::string, std::string>> read_labels(const OperationShape& operation,
                                                       const net::RequestHead& head) {
  std::map<std::string, std::string> labels;
  const auto wanted = split(operation.uri, '/'), requested = split(head.path(), '/');
  for (size_t i = 0; i < std::min(wanted.size(), requested.size()); ++i) {
    if (!is_label(wanted[i])) continue;
    auto value = TRY(percent_decode(requested[i]));
    if (!is_utf8(value)) return invalid("the path is not UTF-8");
    labels[std::string(wanted[i].substr(1, wanted[i].size() - 2))] = std::move(value);
  }
  return labels;
}

Route route(std::span<const Service* const> services, const net::RequestHead& head) {
  Route out;
  if (const std::string_view target = head.headers.get("x-amz-target"); !target.empty()) {
    const auto dot = target.rfind('.');
    const std::string_view prefix = target.substr(0, dot);
    out.operation_name =
        dot == std::string_view::npos ? std::string(target) : std::string(target.substr(dot + 1));
    for (const Service* service : services)
      if (!prefix.empty() && target_prefix_of(*service) == prefix) out.service = service;
    if (out.service) out.operation = find_operation(*out.service, out.operation_name);
    return out;
  }
  // Newer clients prefer another protocol, but also support JSON. Their path is not an object's
  // key: they get an error.
  if (head.path().starts_with("/service/") && head.headers.has("smithy-protocol")) {
    out.operation_name = std::string(head.path().substr(head.path().rfind('/') + 1)) + " over " +
                         std::string(head.headers.get("smithy-protocol"));
    return out;
  }
  const std::string scope = scope_service(head);
  const std::string_view content_type = head.headers.get("content-type");
  const bool form = head.method == "POST" && head.path() == "/" &&
                    equals_ignoring_case(content_type.substr(0, content_type.find(';')),
                                         "application/x-www-form-urlencoded");
  for (const Service* service : services) {
    if (service->name == "s3") {
      out.operation_name = operation_of_scope(scope, head);
      if (scope == "s3" || !out.operation_name.empty() || (scope.empty() && !form)) {
        out.protocol = Protocol::rest_xml;
        out.service = service;
      }
    } else if (service->scope == scope) {
      out.protocol = service->query             ? Protocol::query
                     : uses_rest_json(*service) ? Protocol::rest_json
                                                : Protocol::json;
      out.service = service;
    }
  }
  if (!out.service && form) out.protocol = Protocol::query;
  // Services of one scope have different protocols: sagemaker-runtime's operations are paths.
  if (out.service && out.protocol == Protocol::json)
    out.operation_name = std::string(head.method) + " " + std::string(head.path());
  if (out.protocol != Protocol::rest_json) return out;
  out.operation_name = std::string(head.method) + " " + std::string(head.path());
  for (const OperationShape& operation : out.service->operations)
    if (path_fits(operation, head)) out.operation = &operation;
  if (out.operation) return out;
  for (const shapes::AbsentOperation& absent : out.service->absent)
    if (path_fits(absent, head)) out.operation_name = absent.name;
  return out;
}

const OperationShape* find_operation(const Service& service, std::string_view name) {
  for (const auto& operation : service.operations)
    if (operation.name == name) return &operation;
  return nullptr;
}

Result<S3Address> read_s3_address(const net::RequestHead& head) {
  S3Address out;
  std::string_view path = head.path();
  if (path.starts_with('/')) path.remove_prefix(1);
  const auto slash = path.find('/');
  out.bucket = TRY(percent_decode(path.substr(0, slash)));
  if (slash != std::string_view::npos) out.key = TRY(percent_decode(path.substr(slash + 1)));
  if (!is_utf8(out.bucket) || !is_utf8(out.key)) return invalid("the path is not UTF-8");
  if (out.bucket.empty() && !out.key.empty())
    return invalid("the path names a key without a bucket: expected /BUCKET/KEY");
  out.query = TRY(read_query_parameters(head.query()));
  return out;
}

const OperationShape* find_s3_operation(const Service& s3, const net::RequestHead& head,
                                        const S3Address& address, std::string& missing) {
  const OperationShape* best = nullptr;
  Candidate best_candidate;
  for (const auto& operation : s3.operations) {
    Candidate candidate = weigh(operation.method, operation.uri, operation.input, head, address);
    if (!candidate.fits || (best && candidate.weight <= best_candidate.weight)) continue;
    best = &operation;
    best_candidate = std::move(candidate);
  }
  for (const auto& absent : s3.absent) {
    const Candidate candidate = weigh(absent.method, absent.uri, nullptr, head, address);
    if (!candidate.fits || (best && candidate.weight <= best_candidate.weight)) continue;
    missing = absent.name;
    return nullptr;
  }
  missing = std::string(head.method) +
            (address.key.empty() ? address.bucket.empty() ? " service" : " bucket" : " object");
  if (!best) return nullptr;
  for (const auto& [name, value] : address.query) {
    if (std::find(std::begin(kSubresources), std::end(kSubresources), name) ==
        std::end(kSubresources))
      continue;
    if (std::find(best_candidate.used.begin(), best_candidate.used.end(), name) !=
        best_candidate.used.end())
      continue;
    missing += " ?" + name;
    return nullptr;
  }
  missing.clear();
  return best;
}

}  // namespace trainyard::api
