#include "trainyard_api/cost_view.hpp"

#include <cstdio>
#include <cstdlib>

namespace trainyard::api::trainyard_api {

std::string decimal(int64_t millionths) {
  char text[40];
  std::snprintf(text, sizeof text, "%s%lld.%06lld", millionths < 0 ? "-" : "",
                static_cast<long long>(std::abs(millionths) / domain::kMillionths),
                static_cast<long long>(std::abs(millionths) % domain::kMillionths));
  return text;
}

shapes::trainyard::Cost cost_view(const domain::Cost& cost, const std::string& currency) {
  shapes::trainyard::Cost out;
  out.currency = currency;
  out.amount = decimal(cost.millionths);
  out.on_demand_amount = decimal(cost.on_demand_millionths);
  if (!cost.unpriced.empty()) out.unpriced = cost.unpriced;
  return out;
}

}  // namespace trainyard::api::trainyard_api
