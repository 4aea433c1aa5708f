#include "sns/operations.hpp"

#include "sns/common.hpp"

namespace trainyard::api::sns {

void add_operations(OperationTable& table, const Settings& settings, const Services& services) {
  add_topics(table, settings, services);
  add_subscriptions(table, settings, services);
  add_publishing(table, services);
}

}  // namespace trainyard::api::sns
