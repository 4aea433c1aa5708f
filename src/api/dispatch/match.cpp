#include "dispatch/match.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "dispatch/shell.hpp"
#include "shapes/services.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api {
namespace {

const Entry* entry_of(const OperationTable& table, const Match& match) {
  return match.operation ? table.find(*match.operation) : nullptr;
}

}  // namespace

Match match(const OperationTable& table, const net::RequestHead& head) {
  Match match;
  match.shell = is_shell_request(head);
  static_cast<Route&>(match) =
      match.shell ? Route{Protocol::json, &shapes::trainyard::kService, nullptr, "Shell"}
                  : route(all_services(), head);
  match.entry = entry_of(table, match);
  return match;
}

void match_s3(const OperationTable& table, const net::RequestHead& head, Match& match) {
  auto address = read_s3_address(head);
  if (!address) {
    match.failure = s3_failure(400, "InvalidURI",
                               "Couldn't parse the specified URI: " + address.error().message);
    return;
  }
  match.address = *std::move(address);
  std::string missing;
  match.operation = find_s3_operation(*match.service, head, match.address, missing);
  match.entry = entry_of(table, match);
  if (match.entry) return;
  if (missing.empty()) missing = match.operation->name;
  match.failure = unknown_operation(match.service, missing);
}

void match_name(const OperationTable& table, const std::string& name, Match& match) {
  match.operation_name = name;
  match.operation = match.service ? find_operation(*match.service, name) : nullptr;
  match.entry = entry_of(table, match);
}

bool may_block(const OperationTable& table, const Match& match) {
  const auto blocks = [](const Entry* entry) { return entry && entry->runs == Runs::blocking; };
  if (match.operation || match.protocol != Protocol::query) return blocks(match.entry);
  return std::ranges::any_of(match.service->operations,
                             [&](const auto& operation) { return blocks(table.find(operation)); });
}

}  // namespace trainyard::api
