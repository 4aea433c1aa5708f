#include "dispatch/unsigned_form.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "shapes/services.hpp"
#include "shapes/sts.hpp"

namespace trainyard::api {
namespace {

// Returns the value of Action; nothing if further bytes may have it.
std::optional<std::string> action_in(std::string_view text, bool whole) {
  constexpr std::string_view kName = "Action=";
  const auto parts = split(text, '&');
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool ended = whole || i + 1 < parts.size();
    if (ended && parts[i].starts_with(kName)) return std::string(parts[i].substr(kName.size()));
  }
  return whole ? std::optional(std::string()) : std::nullopt;
}

bool is_absent(const shapes::Service& service, std::string_view name) {
  return std::ranges::find(service.absent, name, &shapes::AbsentOperation::name) !=
         service.absent.end();
}

}  // namespace

std::optional<Failure> UnsignedForm::feed(std::string_view bytes, bool whole, Route& route) {
  text_.append(bytes);
  const auto name = action_in(text_, whole);
  if (!name) return std::nullopt;
  route.operation_name = *name;
  if (is_absent(shapes::sts::kService, *name)) {
    route.service = &shapes::sts::kService;
    return unknown_operation(route.service, *name);
  }
  for (const auto* service : all_services()) {
    if (!service->query || (!find_operation(*service, *name) && !is_absent(*service, *name)))
      continue;
    route.service = service;
    return missing_authentication(*service);
  }
  return unknown_operation(nullptr, *name);
}

}  // namespace trainyard::api
