#include "console/rights.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "console/api_call.hpp"
#include "protocol/json.hpp"

namespace trainyard::api::console {
namespace {

bool has_required_members(const shapes::Shape& shape, const void* input) {
  return std::ranges::all_of(shape.members, [&](const shapes::Member& member) {
    return !member.required || member.find(input);
  });
}

bool may_make(const Json& call, const MayCall& may) {
  const auto service = string_at(call, "Service"), name = string_at(call, "Operation");
  if (!service || !name) return false;
  const shapes::OperationShape* operation = find_page_operation(*service, *name);
  if (!operation) return false;
  if (!operation->input) return may(*operation, nullptr);
  const std::unique_ptr<void, void (*)(void*)> input(operation->input_lifetime.make(),
                                                     operation->input_lifetime.destroy);
  const auto given = call.find("Input");
  const std::string text = given == call.end() ? "{}" : dump(*given);
  if (!read_json(*operation->input, text, input.get())) return false;
  return has_required_members(*operation->input, input.get()) && may(*operation, input.get());
}

}  // namespace

Result<Json> rights_of(std::string_view request, const MayCall& may) {
  const Json read = TRY(parse_json(request));
  const auto calls = read.is_object() ? read.find("Calls") : read.end();
  if (calls == read.end() || !calls->is_array())
    return invalid("invalid request for rights: Calls must be a list");
  if (calls->size() > kRightsCallsMax)
    return invalid("invalid request for rights: Calls has " + std::to_string(calls->size()) +
                   " elements, and at most " + std::to_string(kRightsCallsMax) + " are allowed");
  Json allowed = Json::array();
  for (const Json& call : *calls) allowed.push_back(call.is_object() && may_make(call, may));
  return Json{{"Allowed", std::move(allowed)}};
}

}  // namespace trainyard::api::console
