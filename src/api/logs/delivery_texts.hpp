// Converts types and formats of deliveries to AWS's texts and back.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string_view>

#include "log_routing/delivery_records.hpp"

namespace trainyard::api::logs {

const char* delivery_type_text(log_routing::DeliveryType type);  // "S3"
const char* delivery_format_text(log_routing::DeliveryFormat format);
// Returns nothing for a format that this server does not write.
std::optional<log_routing::DeliveryFormat> delivery_format_of(std::string_view text);

}  // namespace trainyard::api::logs
