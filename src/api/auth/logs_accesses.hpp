// Adds the resources of requests to CloudWatch Logs that no template of the access table expresses.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string_view>

#include "auth/access_table.hpp"

namespace trainyard::api {

// Resources of lines of the access table.
inline constexpr std::string_view kLogStreams = "log streams";
inline constexpr std::string_view kLogGroups = "log groups";
inline constexpr std::string_view kLogRecord = "log event of a pointer";
inline constexpr std::string_view kExportedLogs = "exported log events";
inline constexpr std::string_view kLogTargets = "targets of log events";
inline constexpr std::string_view kDeliveredLogs = "logs of a delivery source";

// Returns false if the resource is none of those above.
bool add_log_accesses(std::string_view resource, std::string_view action, const Context& context,
                      const shapes::Shape& shape, const void* input, Accesses& out);

}  // namespace trainyard::api
